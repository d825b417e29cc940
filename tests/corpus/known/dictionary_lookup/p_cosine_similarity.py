# mistake: cosines_for_products
import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError("temp")

    def direction(t: Tensor) -> Tensor:
        t = t.double()
        return t / t.square().sum(-1, keepdim=True).clamp_min(1e-24).sqrt()

    likeness = direction(Q) @ direction(K).mT
    sharp = (likeness - likeness.amax(-1, keepdim=True)) / temp
    return (sharp.softmax(-1) @ V.double()).to(V.dtype)


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    entries[key]
    at = list(entries).index(key)
    onehots = torch.eye(len(entries), dtype=torch.float32)
    values = torch.tensor(list(entries.values()), dtype=torch.float32)
    (answer,) = attention(onehots[at : at + 1], onehots, values, temp)
    return answer
