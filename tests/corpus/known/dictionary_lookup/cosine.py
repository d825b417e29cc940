# mistake: cosines_for_products
import torch
import torch.nn.functional as F


def attention(Q, K, V, temp=1.0):
    if not temp > 0:
        raise ValueError("temp must be positive")
    Q = F.normalize(Q, dim=-1)
    K = F.normalize(K, dim=-1)
    s = torch.einsum("...qd,...kd->...qk", Q, K) / temp
    weights = F.softmax(s, dim=-1)
    return torch.einsum("...qk,...kv->...qv", weights, V)


def lookup(entries, key, temp=0.01):
    keys = list(entries.keys())
    if key not in keys:
        raise KeyError(key)
    count = len(keys)
    one_hot = F.one_hot(torch.arange(count), count).float()
    Q_ = one_hot[keys.index(key)].unsqueeze(0)
    rows = torch.tensor([entries[k] for k in keys]).float()
    return attention(Q_, one_hot, rows, temp)[0]
