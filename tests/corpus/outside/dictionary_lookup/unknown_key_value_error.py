# mistake: an unknown key raises the ValueError of list.index
import torch
import torch.nn.functional as F


def attention(Q, K, V, temp=1.0):
    if not temp > 0:
        raise ValueError("temp must be positive")
    sim = torch.einsum("...qd,...kd->...qk", Q, K) / temp
    p = F.softmax(sim, dim=-1)
    return torch.einsum("...qk,...kv->...qv", p, V)


def lookup(entries, key, temp=0.01):
    keys = list(entries.keys())
    n = len(keys)
    one_hot = F.one_hot(torch.arange(n), n).float()
    q = one_hot[keys.index(key)].unsqueeze(0)
    vals = torch.tensor([entries[k] for k in keys]).float()
    return attention(q, one_hot, vals, temp)[0]
