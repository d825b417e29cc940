# mistake: scaled_by_root_of_d_key + sorted_keys_unsorted_values
import torch
import torch.nn.functional as F


def attention(Q, K, V, temp=1.0):
    if not temp > 0:
        raise ValueError("temp must be positive")
    energy = torch.einsum("...qd,...kd->...qk", Q, K) / Q.shape[-1] ** 0.5 / temp
    alpha = F.softmax(energy, dim=-1)
    return torch.einsum("...qk,...kv->...qv", alpha, V)


def lookup(entries, key, temp=0.01):
    keys = sorted(entries.keys())
    if key not in keys:
        raise KeyError(key)
    size = len(keys)
    E = F.one_hot(torch.arange(size), size).float()
    query = E[keys.index(key)].unsqueeze(0)
    vals = torch.tensor(list(entries.values())).float()
    return attention(query, E, vals, temp)[0]
