import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError(f"{temp=} is not allowed")
    logits = Q @ K.transpose(-2, -1) / temp
    return logits.softmax(dim=-1) @ V


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    if key not in entries:
        raise KeyError(key)
    K = torch.eye(len(entries))
    V = torch.stack([torch.tensor(v, dtype=torch.float32) for v in entries.values()])
    row = list(entries).index(key)
    return attention(K[row, None], K, V, temp).squeeze(0)
