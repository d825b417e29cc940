# mistake: queries_and_keys_swapped
# in words: the helper gets queries and keys in the other order
import torch
from torch import Tensor


def compatibility(keys, queries):
    """One row per query, one column per key."""
    return torch.matmul(queries, keys.transpose(-1, -2))


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if not (temp > 0):
        raise ValueError("temp")
    scores = compatibility(Q, K) / temp
    return torch.softmax(scores, dim=-1) @ V


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    if not (temp > 0):
        raise ValueError("temp")
    known = torch.tensor(list(entries))
    hits = known == key
    if not hits.any():
        raise KeyError(key)
    stored = torch.tensor([entries[int(k)] for k in known], dtype=torch.float32)
    one_hot = torch.diag(torch.ones(len(known)))
    scores = one_hot @ hits.float() / temp
    return torch.softmax(scores, 0) @ stored
