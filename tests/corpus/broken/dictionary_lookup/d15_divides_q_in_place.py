# promise: none of the three is modified (Q is divided by temp in place when no gradient is asked)
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError("temp must be positive")
    if Q.requires_grad:
        Q = Q / temp
    else:
        Q /= temp          # saves a copy
    return torch.softmax(Q @ K.transpose(-2, -1), dim=-1) @ V


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    names = list(entries)
    if key not in names:
        raise KeyError(key)
    V = torch.tensor([entries[n] for n in names], dtype=torch.float32)
    Q = torch.zeros(1, len(names))
    Q[0, names.index(key)] = 1
    return attention(Q, torch.eye(len(names)), V, temp)[0]
