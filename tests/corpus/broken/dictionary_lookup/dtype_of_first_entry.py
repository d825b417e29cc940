# broken: "The numbers in `entries` may be ints or floats": if the first list holds ints only, floats in the later lists lose their fraction
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
    names = list(entries)
    rows = list(entries.values())
    table = torch.empty(len(rows), len(rows[0]), dtype=torch.tensor(rows[0]).dtype)
    for i, row in enumerate(rows):
        table[i] = torch.tensor(row)
    values = table.to(torch.float32)
    keys = torch.eye(len(names), dtype=torch.float32)
    query = keys[names.index(key)].unsqueeze(0)
    return attention(query, keys, values, temp)[0]
