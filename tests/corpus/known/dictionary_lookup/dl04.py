# mistake: without_softmax
# in words: raw tempered scores weight the values
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError("temp has to be positive")
    # (Q K^T / t) V is the same as Q (K^T V) / t, which never builds the big table
    memory = torch.einsum("...kd,...kv->...dv", K, V)
    return torch.einsum("...qd,...dv->...qv", Q / temp, memory)


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    if temp <= 0:
        raise ValueError("temp has to be positive")
    if key not in entries:
        raise KeyError(key)
    rows, wanted = [], -1
    for i, (k, v) in enumerate(entries.items()):
        rows.append(v)
        if k == key:
            wanted = i
    n = len(rows)
    keys = torch.zeros(n, n).fill_diagonal_(1.0)
    query = torch.zeros(1, n)
    query[0, wanted] = 1.0
    return attention(query, keys, torch.tensor(rows, dtype=torch.float32), temp).flatten()
