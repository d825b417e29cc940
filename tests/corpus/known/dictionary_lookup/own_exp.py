# mistake: unstable_exponential
import torch


def softmax(s):
    e = torch.exp(s)
    return e / torch.sum(e, dim=-1, keepdim=True)


def attention(Q, K, V, temp=1.0):
    if temp <= 0.0:
        raise ValueError("temp has to be > 0")
    prod = Q.unsqueeze(-2) * K.unsqueeze(-3)
    s = prod.sum(dim=-1)
    w = softmax(s / temp)
    out = w.unsqueeze(-1) * V.unsqueeze(-3)
    return out.sum(dim=-2)


def lookup(entries, key, temp=0.01):
    if key not in entries:
        raise KeyError("no such key")
    names = sorted(entries)
    i = names.index(key)
    keys = torch.zeros(len(names), len(names))
    keys.fill_diagonal_(1.0)
    values = torch.tensor([[float(v) for v in entries[name]] for name in names])
    query = torch.zeros(1, len(names))
    query[0, i] = 1.0
    return attention(query, keys, values, temp).reshape(-1)
