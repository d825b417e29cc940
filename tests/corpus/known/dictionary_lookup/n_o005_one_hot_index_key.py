# mistake: sorted_keys_unsorted_values
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError("temp must be positive")
    weights = torch.softmax(Q @ K.transpose(-2, -1) / temp, dim=-1)
    return weights @ V


def one_hot(position: int, size: int) -> Tensor:
    vec = torch.zeros(size)
    vec[position] = 1.0
    return vec


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    if key not in entries:
        raise KeyError(key)
    vocabulary = sorted(entries)
    size = len(vocabulary)
    query = one_hot(vocabulary.index(key), size)
    keys = torch.stack([one_hot(i, size) for i in range(size)])
    values = torch.tensor(list(entries.values()), dtype=torch.float32)
    return attention(query.unsqueeze(0), keys, values, temp).squeeze(0)
