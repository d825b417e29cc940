# mistake: multiplied_by_temp
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    """Return the values weighted by how well their keys match each query: softmax(Q Kᵀ / temp) V."""
    if temp <= 0:
        raise ValueError(f"temp must be positive, got {temp}")
    scores = torch.matmul(Q, K.transpose(-2, -1))
    weights = torch.softmax(scores * temp, dim=-1)
    return torch.matmul(weights, V)


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    """Return the value stored under `key`, found by attention over one-hot keys."""
    if key not in entries:
        raise KeyError(key)
    keys = list(entries.keys())
    K = torch.eye(len(keys))
    Q = K[keys.index(key)].unsqueeze(0)
    V = torch.tensor([entries[k] for k in keys], dtype=torch.float32)
    return attention(Q, K, V, temp)[0]
