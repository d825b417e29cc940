# mistake: the temperature is applied as a power to finished softmax weights, which underflow at a small temp
import torch
from torch import Tensor


def check_temp(temp: float) -> None:
    if not temp > 0:
        raise ValueError(f"temp must be above 0, not {temp}")


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    """Return softmax(Q K^T / temp) V."""
    check_temp(temp)
    scores = Q @ K.transpose(-2, -1)
    weights = torch.softmax(scores, dim=-1) ** (1 / temp)
    weights = weights / weights.sum(dim=-1, keepdim=True)
    return weights @ V


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    """Return the value of `key`, by attention over one-hot keys."""
    check_temp(temp)
    if key not in entries:
        raise KeyError(key)
    names = list(entries)
    values = torch.tensor([list(row) for row in entries.values()], dtype=torch.float32)
    keys = torch.eye(len(names), dtype=torch.float32)
    query = keys[names.index(key)].unsqueeze(0)
    return attention(query, keys, values, temp)[0]
