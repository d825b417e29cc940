# mistake: divided_by_the_sum
# in words: rows are divided by their sum, no exponential
import torch
from torch import Tensor


def normalise(t: Tensor) -> Tensor:
    total = t.sum(dim=-1, keepdim=True)
    return t / total


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError("temp must be larger than zero")
    w = normalise((Q.unsqueeze(-2) * K.unsqueeze(-3)).sum(-1) / temp)
    return torch.matmul(w, V)


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    if temp <= 0:
        raise ValueError("temp must be larger than zero")
    values = {k: torch.tensor(v, dtype=torch.float) for k, v in entries.items()}
    values[key]
    idx = list(values).index(key)
    eye = torch.eye(len(values))
    return attention(eye[idx].view(1, -1), eye, torch.stack(list(values.values())), temp).view(-1)
