import torch
import torch.nn.functional as F
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError(temp)
    # F.linear(x, W) is x @ W.T; with batches it is written with matmul
    scores = F.linear(Q, K) if Q.dim() == 2 else Q.matmul(K.transpose(-1, -2))
    return F.softmax(scores / temp, dim=-1, dtype=torch.promote_types(Q.dtype, torch.float32)).to(V.dtype) @ V


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    if key not in entries:
        raise KeyError(f"unknown key: {key!r}")
    ids = torch.arange(len(entries))
    keys = F.one_hot(ids, num_classes=len(entries)).to(torch.float32)
    where = [k for k in entries].index(key)
    vals = torch.tensor(list(entries.values()), dtype=torch.float64).float()
    return attention(keys[where].unsqueeze(0), keys, vals, temp).squeeze(0)
