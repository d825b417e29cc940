import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0.0:
        raise ValueError("temp must be > 0")
    return torch.softmax(Q @ K.mT / temp, dim=-1) @ V


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    if not key in entries:
        raise KeyError(key)
    n = len(entries)
    K = torch.eye(n)
    V = torch.FloatTensor(list(entries.values()))
    q = torch.tensor([k == key for k in entries], dtype=torch.float32)
    return attention(q.view(1, n), K, V, temp).view(-1)
