# promise: a temp of 0 or below raises ValueError in both functions (lookup has its own softmax and no check)
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError("temp <= 0")
    logits = Q @ K.transpose(-1, -2) / temp
    return torch.softmax(logits, dim=-1) @ V


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    if key not in entries:
        raise KeyError(key)
    hits = torch.tensor([float(k == key) for k in entries])
    weights = torch.softmax(hits / temp, dim=0)
    values = torch.tensor([[float(n) for n in v] for v in entries.values()])
    return weights @ values
