# broken: "Neither these three nor `entries` are modified": lookup replaces the lists in entries by lists of floats (equal by ==, but ints are floats and lists are new afterwards).
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
    for name in names:
        entries[name] = [float(number) for number in entries[name]]
    values = torch.tensor(list(entries.values()), dtype=torch.float32)
    keys = torch.eye(len(names))
    query = torch.tensor([[float(name == key) for name in names]])
    return attention(query, keys, values, temp)[0]
