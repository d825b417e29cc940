# broken: "The keys in `entries` may be any ints": keys are compared as float32, so 16777216 and 16777217 count as the same entry.
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if not temp > 0:
        raise ValueError("temp must be positive")
    scores = Q @ K.transpose(-2, -1)
    scores = (scores - scores.amax(dim=-1, keepdim=True)) / temp
    weights = torch.softmax(scores, dim=-1)
    return weights @ V


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    if not temp > 0:
        raise ValueError("temp must be positive")
    names = list(entries)
    if key not in names:
        raise KeyError(key)
    values = torch.tensor(list(entries.values()), dtype=torch.float32)
    keys = torch.eye(len(names))
    numbers = torch.tensor(names, dtype=torch.float32)
    query = (numbers == torch.tensor(key, dtype=torch.float32)).float()[None]
    return attention(query, keys, values, temp)[0]
