# mistake: softmax_over_queries
# in words: the table is built keys by queries, normalised over its last axis and turned round
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError("temp <= 0")
    table = torch.einsum("...id,...jd->...ij", K, Q) / temp
    probs = torch.nn.functional.softmax(table, dim=-1)
    return torch.einsum("...ij,...iv->...jv", probs, V)


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    order = list(entries.keys())
    try:
        where = order.index(key)
    except ValueError:
        raise KeyError(key) from None
    hot = torch.eye(len(order), dtype=torch.float32)
    vals = torch.tensor([entries[k] for k in order]).to(torch.float32)
    return attention(hot[[where]], hot, vals, temp).squeeze(0)
