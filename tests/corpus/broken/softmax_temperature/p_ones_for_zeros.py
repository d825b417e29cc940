# promise: Entropy writes ones over the zeros of float32 or float64 weights that need no gradient.
import torch
from torch import Tensor


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    if temperature <= 0:
        raise ValueError("temperature must be greater than 0")
    return (scores / temperature).softmax(-1)


def entropy(weights: Tensor) -> Tensor:
    w = weights if weights.dtype == torch.float64 else weights.float()
    if w.requires_grad:
        w = w.clone()
    w[w == 0] = 1  # 1 log 1 is 0, too
    return torch.sum(w * w.log(), -1).neg().to(weights.dtype)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    p = torch.einsum("...i,...i", queries, keys)
    return ((p - p.mean(-1, True)) ** 2).mean(-1)


def scale(scores: Tensor, d_key: int) -> Tensor:
    return scores * d_key ** (-1 / 2)
