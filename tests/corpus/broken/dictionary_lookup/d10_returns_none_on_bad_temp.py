# promise: a temp of 0 or below raises ValueError (prints a message and returns None)
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp > 0:
        scores = torch.einsum("...qd,...kd->...qk", Q, K) / temp
        return torch.einsum("...qk,...kv->...qv", scores.softmax(-1), V)
    print("ValueError: temp must be positive")


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    if key not in entries:
        raise KeyError(key)
    if temp <= 0:
        raise ValueError("temp must be positive")
    ks = sorted(entries)
    E = torch.eye(len(ks))
    V = torch.tensor([entries[k] for k in ks], dtype=torch.float32)
    return attention(E[ks.index(key)].reshape(1, -1), E, V, temp)[0]
