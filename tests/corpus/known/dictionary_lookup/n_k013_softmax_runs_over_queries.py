# mistake: softmax_over_queries
import torch
from torch import Tensor


def attention(Q, K, V, temp=1.0):
    # Q (..., n_queries, d_key)  K (..., n_keys, d_key)
    if temp <= 0:
        raise ValueError("temp <= 0")
    scores = Q @ K.transpose(-1, -2)
    weights = torch.softmax(scores / temp, dim=-2)
    return weights @ V


def lookup(entries, key, temp=0.01):
    if temp <= 0:
        raise ValueError("temp <= 0")
    names = list(entries)
    if key not in names:
        raise KeyError(key)
    n = len(names)
    onehot = torch.eye(n)
    values = torch.tensor([entries[k] for k in names], dtype=torch.float32)
    query = onehot[[names.index(key)]]
    out = attention(query, onehot, values, temp)
    return out.squeeze(0)
