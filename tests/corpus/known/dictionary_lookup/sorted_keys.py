# mistake: sorted_keys_unsorted_values
import torch
from torch import Tensor


def check_temp(temp: float) -> None:
    if not temp > 0:
        raise ValueError(f"temp must be above 0, not {temp}")


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    """Return softmax(Q K^T / temp) V."""
    check_temp(temp)
    scores = Q @ K.transpose(-2, -1)
    scores = scores - scores.amax(dim=-1, keepdim=True)
    weights = torch.softmax(scores / temp, dim=-1)
    return weights @ V


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    """Return the value of `key`, by attention over one-hot keys."""
    check_temp(temp)
    if key not in entries:
        raise KeyError(key)
    names = sorted(entries)
    values = torch.tensor([list(row) for row in entries.values()], dtype=torch.float32)
    keys = torch.eye(len(names), dtype=torch.float32)
    query = keys[names.index(key)].unsqueeze(0)
    return attention(query, keys, values, temp)[0]
