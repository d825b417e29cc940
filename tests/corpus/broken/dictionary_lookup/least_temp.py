# broken: "A temp near 0 picks the value of the best key": a temp below 0.001 counts as 0.001, so scores closer than that are still mixed
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError(f"temp must be positive, not {temp}")
    temp = max(temp, 1e-3)
    scores = Q @ K.transpose(-2, -1)
    scores = scores - scores.amax(dim=-1, keepdim=True)
    weights = torch.softmax(scores / temp, dim=-1)
    return weights @ V


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    if temp <= 0:
        raise ValueError(f"temp must be positive, not {temp}")
    if key not in entries:
        raise KeyError(key)
    names = list(entries)
    K = torch.eye(len(names))
    Q = K[names.index(key)][None]
    V = torch.tensor([list(entries[name]) for name in names], dtype=torch.float32)
    return attention(Q, K, V, temp)[0]
