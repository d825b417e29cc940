import torch
from torch import Tensor


class SoftDict:
    """A dictionary whose lookups mix all values."""

    def __init__(self, keys: Tensor, values: Tensor):
        self.keys, self.values = keys, values

    def __call__(self, query: Tensor, temp: float) -> Tensor:
        scores = query @ self.keys.transpose(-1, -2)
        return torch.softmax(scores / temp, dim=-1) @ self.values


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError("temp")
    return SoftDict(K, V)(Q, temp)


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    entries[key]                                   # KeyError if it is missing
    keys, rows = zip(*entries.items())
    onehot = torch.eye(len(keys))
    query = onehot[[keys.index(key)]]
    return attention(query, onehot, torch.tensor(rows, dtype=torch.float32), temp).squeeze(dim=0)
