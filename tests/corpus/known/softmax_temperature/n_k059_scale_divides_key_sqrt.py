# mistake: scaled_by_d_key
import torch
from torch import Tensor


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    if temperature <= 0:
        raise ValueError("temperature")
    s = scores / temperature
    s = s - s.max(-1, keepdim=True)[0]
    return s.exp() / s.exp().sum(-1, keepdim=True)


def entropy(weights: Tensor) -> Tensor:
    # 0 log 0 = 0
    logw = torch.zeros_like(weights)
    nonzero = weights != 0
    logw = torch.where(nonzero, weights.masked_fill(~nonzero, 1).log(), logw)
    return -(weights * logw).sum(-1)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    dots = torch.einsum("...nd,...nd->...n", queries, keys)
    return dots.var(-1, unbiased=False)


def scale(scores: Tensor, d_key: int) -> Tensor:
    return scores / d_key
