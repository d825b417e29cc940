# broken: "Both functions refuse a temp of 0 or below": attention refuses 0 only; below 0 it goes on (and lookup with it)
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    """Return softmax(Q K^T / temp) V."""
    if not temp:
        raise ValueError(f"temp must be positive, not {temp}")
    scores = Q @ K.transpose(-2, -1)
    scores = scores - scores.amax(dim=-1, keepdim=True)
    weights = torch.softmax(scores / temp, dim=-1)
    return weights @ V


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    """Return the value stored under `key`, found by attention over one-hot keys."""
    if key not in entries:
        raise KeyError(key)
    names = list(entries)
    K = torch.eye(len(names))
    Q = K[names.index(key)].unsqueeze(0)
    V = torch.tensor([entries[name] for name in names], dtype=torch.float32)
    return attention(Q, K, V, temp)[0]
