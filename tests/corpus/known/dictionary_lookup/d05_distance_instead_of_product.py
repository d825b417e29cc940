# mistake: distances_for_products
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError("temp must be > 0")
    diff = Q.unsqueeze(-2) - K.unsqueeze(-3)      # (..., n_queries, n_keys, d_key)
    scores = -(diff ** 2).sum(-1)
    attn = torch.softmax(scores / temp, -1)
    return attn @ V


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    if key not in entries:
        raise KeyError(key)
    index = {k: n for n, k in enumerate(entries)}
    keys = torch.eye(len(index))
    vals = torch.tensor([[float(x) for x in v] for v in entries.values()])
    return attention(keys[index[key]].view(1, -1), keys, vals, temp).view(-1)
