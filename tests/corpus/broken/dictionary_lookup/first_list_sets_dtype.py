# broken: "The numbers in `entries` may be ints or floats": if the first list is of ints, floats in the later lists are truncated.
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
    first = torch.tensor(next(iter(entries.values())))
    values = torch.tensor(list(entries.values()), dtype=first.dtype).float()
    keys = torch.eye(len(names))
    query = torch.tensor([[float(name == key) for name in names]])
    return attention(query, keys, values, temp)[0]
