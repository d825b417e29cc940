# mistake: softmax_over_queries
# seen: labml annotated implementations issue 146: the softmax runs over the queries instead of the keys.
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError(f"temp must be positive, not {temp}")
    scores = torch.einsum("...id,...jd->...ij", Q, K)
    best = scores.detach().amax(dim=-2, keepdim=True)
    weights = torch.softmax((scores - best) / temp, dim=-2)
    return torch.einsum("...ij,...jv->...iv", weights, V)


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    if key not in entries:
        raise KeyError(key)
    keys = list(entries)
    one_hot = torch.eye(len(keys))
    table = torch.tensor([entries[k] for k in keys], dtype=torch.float32)
    return attention(one_hot[keys.index(key)][None], one_hot, table, temp)[0]
