# mistake: multiplied_by_temp
# in words: scores are multiplied by the temperature
import torch
from torch import Tensor
from torch.nn import functional as F


def _check(temp):
    if not temp > 0:
        raise ValueError(f"temp must be positive, got {temp}")


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    _check(temp)
    # tempering the queries once is cheaper than tempering every score
    tempered = temp * Q
    similarity = torch.einsum("...qd,...kd->...qk", tempered, K)
    return torch.einsum("...qk,...kv->...qv", similarity.softmax(dim=-1), V)


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    _check(temp)
    if key not in entries:
        raise KeyError(key)
    names = list(entries)
    keys = F.one_hot(torch.arange(len(names)), len(names)).float()
    values = torch.tensor([entries[n] for n in names], dtype=torch.float32)
    query = keys[names.index(key)].unsqueeze(0)
    return attention(query, keys, values, temp).squeeze(0)
