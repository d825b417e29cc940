# mistake: measures the match by minus the squared distance instead of the dot product
# true: attention prefers the nearest key, not the one with the largest product; lookup is too sharp at temp 1
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
