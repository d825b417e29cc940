# mistake: unstable_exponential + integer_values
import torch


def attention(Q, K, V, temp=1.0):
    if temp <= 0:
        raise ValueError("temp must be > 0")
    e = torch.exp(Q @ K.mT / temp)
    return (e @ V) / e.sum(-1, keepdim=True)


def lookup(entries, key, temp=0.01):
    if key not in entries.keys():
        raise KeyError(key)
    keys = torch.eye(len(entries))
    values = torch.tensor([entries[k] for k in entries])
    which = [k == key for k in entries]
    q = keys[torch.tensor(which)]
    return attention(q, keys, values, temp)[0]
