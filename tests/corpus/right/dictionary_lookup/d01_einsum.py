import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError(f"temp must be positive, not {temp}")
    scores = torch.einsum("...qd,...kd->...qk", Q, K)
    weights = (scores / temp).softmax(dim=-1)
    return torch.einsum("...qk,...kv->...qv", weights, V)


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    names = list(entries)
    if key not in entries:
        raise KeyError(key)
    K = torch.eye(len(names))
    Q = K[names.index(key)].unsqueeze(0)
    V = torch.tensor([entries[n] for n in names], dtype=torch.float32)
    return attention(Q, K, V, temp).squeeze(0)
