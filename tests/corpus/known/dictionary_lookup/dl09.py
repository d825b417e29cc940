# mistake: argmax_for_softmax
# in words: the best key is picked with topk and gathered, a hard lookup
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0.0:
        raise ValueError("temp must be positive")
    scores = (Q @ K.mT) / temp
    best = scores.topk(1, dim=-1).indices  # (..., n_queries, 1)
    index = best.expand(*best.shape[:-1], V.size(-1))
    return V.gather(-2, index)


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    if key not in entries:
        raise KeyError(key)
    slots = dict(zip(entries, range(len(entries))))
    K = torch.nn.functional.one_hot(torch.tensor(list(slots.values())), len(slots)).to(torch.float32)
    V = torch.tensor([entries[k] for k in slots], dtype=torch.float32)
    return attention(K.narrow(0, slots[key], 1), K, V, temp)[0]
