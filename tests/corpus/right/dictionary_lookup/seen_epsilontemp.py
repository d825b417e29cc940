# right: the twin of one with a mistake, epsilontemp
# seen: suno-ai/bark issue 270: a small number is added to the temperature against the division by zero, instead of refusing 0 and below.
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if not temp > 0:
        raise ValueError("temp must be above 0")
    scores = Q @ K.transpose(-2, -1)
    scores = scores - scores.amax(dim=-1, keepdim=True).detach()
    weights = torch.softmax(scores / temp, dim=-1)
    return weights @ V


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    names = sorted(entries)
    values = torch.tensor([entries[name] for name in names], dtype=torch.float32)
    keys = torch.diag(torch.ones(len(names)))
    if key not in names:
        raise KeyError(f"no entry {key}")
    query = torch.zeros(1, len(names))
    query[0, names.index(key)] = 1.0
    return attention(query, keys, values, temp).squeeze(0)
