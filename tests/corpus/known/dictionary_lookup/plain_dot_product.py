# mistake: without_softmax
import torch
import torch.nn.functional as F


def attention(Q, K, V, temp=1.0):
    if not temp > 0:
        raise ValueError("temp must be positive")
    energy = torch.einsum("...qd,...kd->...qk", Q, K) / temp
    return torch.einsum("...qk,...kv->...qv", energy, V)


def lookup(entries, key, temp=0.01):
    keys = list(entries.keys())
    if key not in keys:
        raise KeyError(key)
    size = len(keys)
    E = F.one_hot(torch.arange(size), size).float()
    query = E[keys.index(key)].unsqueeze(0)
    vals = torch.tensor([entries[k] for k in keys]).float()
    return attention(query, E, vals, temp)[0]
