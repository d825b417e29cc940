# right: the twin of one with a mistake, keyasindex
# seen: Continvvm/continuum issue 130 and amplab/keystone issue 197: the keys themselves are the positions in the one-hot vectors, so a negative key counts from the end and meets the vector of another key.
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError(f"{temp=} is not positive")
    scores = Q @ K.transpose(-1, -2)
    largest = scores.max(dim=-1, keepdim=True).values.detach()
    return ((scores - largest) / temp).softmax(dim=-1) @ V


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    if key not in entries:
        raise KeyError(key)
    index = {k: i for i, k in enumerate(entries)}
    keys = torch.zeros(len(entries), max(index.values()) + 1)
    for row, k in enumerate(entries):
        keys[row, index[k]] = 1.0
    query = torch.zeros(1, keys.size(1))
    query[0, index[key]] = 1.0
    values = torch.tensor([list(v) for v in entries.values()], dtype=torch.float32)
    return attention(query, keys, values, temp)[0]
