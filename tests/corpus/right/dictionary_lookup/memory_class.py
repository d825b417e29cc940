# right: a small class holds keys and values, the work is done in float64
import torch
from torch import Tensor


class Memory:
    """Keys and values that can be asked."""

    def __init__(self, keys: Tensor, values: Tensor):
        self.keys, self.values = keys, values

    def read(self, queries: Tensor, temp: float) -> Tensor:
        wide = torch.float64
        scores = torch.matmul(queries.to(wide), self.keys.to(wide).mT)
        log_weights = torch.log_softmax(scores.div(temp), dim=-1)
        return torch.matmul(log_weights.exp(), self.values.to(wide)).to(self.values.dtype)


def positive(temp: float) -> float:
    if temp > 0:
        return temp
    raise ValueError("temp must be positive")


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    """Return softmax(Q K^T / temp) V."""
    return Memory(K, V).read(Q, positive(temp))


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    """Return the value of `key`, by attention over one-hot keys."""
    place = {name: i for i, name in enumerate(entries)}
    temp = positive(temp)
    identity = torch.diag(torch.ones(len(place), dtype=torch.float32))
    index = place[key]
    values = torch.stack([torch.as_tensor(row, dtype=torch.float32) for row in entries.values()])
    return attention(identity[index : index + 1], identity, values, temp).flatten()
