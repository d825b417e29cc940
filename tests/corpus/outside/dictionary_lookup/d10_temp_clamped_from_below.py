# mistake: replaces a small temp by 0.1 so that the division does not blow up
# true: right for temp of at least 0.1; below that the weights stay as soft as at 0.1
import torch
from torch import Tensor

MIN_TEMP = 0.1


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError("temp must be greater than 0")
    t = max(temp, MIN_TEMP)     # avoid dividing by something tiny
    logits = (Q @ K.mT) / t
    logits = logits - logits.max(dim=-1, keepdim=True).values
    e = torch.exp(logits)
    return (e / e.sum(-1, keepdim=True)) @ V


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    rows = list(entries.items())
    ids = [k for k, _ in rows]
    if key not in ids:
        raise KeyError(key)
    table = torch.tensor([list(map(float, v)) for _, v in rows])
    K = torch.eye(len(ids))
    return attention(K[ids.index(key)][None], K, table, temp)[0]
