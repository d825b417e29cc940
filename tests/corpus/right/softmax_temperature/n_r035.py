# style: unusual
import math

import torch
from torch import Tensor


def _wide(t: Tensor) -> Tensor:
    return t if t.dtype == torch.float64 else t.float()


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    if not temperature > 0:
        raise ValueError(f"temperature {temperature} is not positive")
    z = _wide(scores)
    z = (z - z.amax(dim=-1, keepdim=True)) / temperature
    e = torch.exp(z)
    return torch.div(e, e.sum(-1, keepdim=True)).to(scores.dtype)


def entropy(weights: Tensor) -> Tensor:
    w = _wide(weights)
    # a weight of 0 becomes 1, whose logarithm is 0
    w = w.masked_fill(w == 0, 1.0)
    return torch.einsum("...k,...k->...", w, w.log()).neg().to(weights.dtype)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    products = torch.einsum("...nd,...nd->...n", _wide(queries), _wide(keys))
    return torch.var(products, dim=-1, correction=0).to(queries.dtype)


def scale(scores: Tensor, d_key: int) -> Tensor:
    return scores / math.sqrt(d_key)
