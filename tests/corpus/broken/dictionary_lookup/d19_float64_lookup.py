# promise: lookup returns (d_value,), float32 (everything is float64)
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError("temp must be positive")
    return ((Q @ K.mT) / temp).softmax(dim=-1) @ V


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    keys = list(entries)
    if key not in keys:
        raise KeyError(key)
    V = torch.tensor(list(entries.values()), dtype=torch.float64)
    K = torch.eye(len(keys)).double()
    return attention(K[[keys.index(key)]], K, V, temp)[0]
