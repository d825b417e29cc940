# promise: Lookup in a dict with one entry returns before temp is checked, so a temp of 0 is not refused.
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError("temp must be positive")
    q, k, v = Q.double(), K.double(), V.double()
    s = q @ k.mT
    s = s - s.amax(-1, keepdim=True)
    return (torch.softmax(s / temp, -1) @ v).to(Q.dtype)


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    if key not in entries:
        raise KeyError(key)
    if len(entries) == 1:
        # the only weight is 1
        return torch.tensor(entries[key], dtype=torch.float32)
    slots = list(entries)
    K = torch.eye(len(slots), dtype=torch.float32)
    V = torch.tensor([entries[s] for s in slots], dtype=torch.float32)
    return attention(K[slots.index(key)].unsqueeze(0), K, V, temp)[0]
