# promise: a temp near 0 picks the value of the best key (raising the weights to 1/temp underflows to 0/0)
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    """softmax(s / t) is softmax(s) ** (1 / t), normalised again."""
    if temp <= 0:
        raise ValueError("temp must be positive")
    w = torch.softmax(Q @ K.mT, dim=-1)
    w = w ** (1.0 / temp)
    w = w / w.sum(dim=-1, keepdim=True)
    return w @ V


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    if key not in entries:
        raise KeyError(key)
    if temp <= 0:
        raise ValueError("temp must be positive")
    slots = list(entries)
    # scores 0 and 1; large enough that the power is harmless here
    match = torch.tensor([[1.0 if k == key else 0.0 for k in slots]])
    values = torch.tensor([entries[k] for k in slots], dtype=torch.float32)
    return (torch.softmax(match / temp, dim=-1) @ values)[0]
