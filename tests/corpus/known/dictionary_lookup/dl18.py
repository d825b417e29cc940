# mistake: multiplied_by_temp + softmax_over_queries
# in words: keys are multiplied by temp + softmax taken over axis -2
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError("temp must be positive")
    hot_keys = K.mul(temp)
    align = Q.matmul(hot_keys.transpose(-2, -1))
    return align.softmax(dim=align.dim() - 2).matmul(V)


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    if temp <= 0:
        raise ValueError("temp must be positive")
    if key not in entries:
        raise KeyError(key)
    keys = list(entries)
    n = len(keys)
    K = torch.zeros(n, n)
    K[torch.arange(n), torch.arange(n)] = 1
    V = torch.tensor([entries[k] for k in keys], dtype=torch.float32)
    return attention(K[keys.index(key)].unsqueeze(0), K, V, temp).squeeze(0)
