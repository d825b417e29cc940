# mistake: multiplied_by_temp
# the scores are multiplied by temp instead of divided by it, so a small temp makes the weights even and a large one sharp
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError("temp must be positive")
    scores = torch.matmul(Q, K.transpose(-2, -1))
    scores = scores - scores.max(dim=-1, keepdim=True).values
    weights = torch.softmax(scores * temp, dim=-1)
    return torch.matmul(weights, V)


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    if key not in entries:
        raise KeyError(key)
    names = list(entries)
    V = torch.tensor([entries[name] for name in names], dtype=torch.float32)
    K = torch.eye(len(names))
    Q = K[names.index(key)].unsqueeze(0)
    return attention(Q, K, V, temp)[0]
