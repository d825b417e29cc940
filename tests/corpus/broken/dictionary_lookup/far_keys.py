# broken: "The keys in entries may be any ints": one-hot vectors have a place for each int from the least key to the largest, so keys such as 0 and 10**12 need more memory than there is
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError(f"temp must be positive, not {temp}")
    scores = Q @ K.transpose(-2, -1)
    scores = scores - scores.amax(dim=-1, keepdim=True)
    weights = torch.softmax(scores / temp, dim=-1)
    return weights @ V


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    if temp <= 0:
        raise ValueError(f"temp must be positive, not {temp}")
    if key not in entries:
        raise KeyError(key)
    names = list(entries)
    low, high = min(names), max(names)
    K = torch.zeros(len(names), high - low + 1)
    K[torch.arange(len(names)), torch.tensor([name - low for name in names])] = 1.0
    Q = K[names.index(key)][None]
    V = torch.tensor([list(entries[name]) for name in names], dtype=torch.float32)
    return attention(Q, K, V, temp)[0]
