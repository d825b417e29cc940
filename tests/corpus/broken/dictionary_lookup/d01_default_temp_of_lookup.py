# promise: lookup(entries, key, temp=0.01): with the default the lookup is practically exact (here the default is 0.2)
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError("temp must be positive")
    return torch.softmax(Q @ K.transpose(-2, -1) / temp, dim=-1) @ V


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.2) -> Tensor:
    keys = list(entries)
    if key not in keys:
        raise KeyError(key)
    hot = torch.eye(len(keys))
    V = torch.tensor([entries[k] for k in keys], dtype=torch.float32)
    return attention(hot[keys.index(key)][None], hot, V, temp)[0]
