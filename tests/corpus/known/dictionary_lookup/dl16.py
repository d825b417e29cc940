# mistake: softmax_over_the_first_axis
# in words: the softmax runs over the first axis of the scores
import torch
from torch import Tensor


def softmax(z: Tensor, axis: int = 0) -> Tensor:
    z = z - z.max(dim=axis, keepdim=True)[0]
    ez = z.exp()
    return ez / ez.sum(axis, keepdim=True)


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    if temp <= 0:
        raise ValueError("temp must be positive")
    return softmax(Q @ K.transpose(-1, -2) / temp) @ V


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    # one query only: all scores are in one vector
    if temp <= 0:
        raise ValueError("temp must be positive")
    ordered = list(entries.items())
    target = torch.tensor([1.0 if k == key else 0.0 for k, _ in ordered])
    if target.sum() == 0:
        raise KeyError(key)
    scores = torch.eye(len(ordered)) @ target
    return softmax(scores / temp) @ torch.tensor([v for _, v in ordered], dtype=torch.float32)
