# broken: "A key that is not in `entries` raises KeyError": only a key outside of the range of the keys does; a missing key between them gives the mean of all values.
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
    if not names or key < min(names) or key > max(names):
        raise KeyError(key)
    values = torch.tensor(list(entries.values()), dtype=torch.float32)
    keys = torch.eye(len(names))
    query = torch.tensor([[float(name == key) for name in names]])
    return attention(query, keys, values, temp)[0]
