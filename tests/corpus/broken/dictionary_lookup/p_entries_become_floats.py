# promise: Lookup replaces the lists in entries by lists of floats (equal in value, but entries is modified).
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if not temp > 0:
        raise ValueError("temp must be positive")
    wide = torch.float64
    scores = Q.to(wide).matmul(K.to(wide).transpose(-2, -1))
    scores = scores - scores.amax(-1, keepdim=True)
    weights = (scores / temp).exp()
    weights = weights / weights.sum(-1, keepdim=True)
    return weights.matmul(V.to(wide)).to(Q.dtype)


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    if key not in entries:
        raise KeyError(key)
    for name, numbers in entries.items():
        entries[name] = [float(n) for n in numbers]
    K = torch.eye(len(entries), dtype=torch.float32)
    Q = K[[list(entries).index(key)]]
    V = torch.tensor(list(entries.values()), dtype=torch.float32)
    return attention(Q, K, V, temp).reshape(-1)
