import math

import torch
from torch import Tensor

_EXACT = (torch.float32, torch.float64)


class _Exact:
    """Runs a function in float32 at least, and hands the result back in the old dtype."""

    def __init__(self, fn):
        self.fn = fn
        self.__doc__ = fn.__doc__

    def __call__(self, first: Tensor, *rest):
        if first.dtype in _EXACT:
            return self.fn(first, *rest)
        rest = [r.float() if isinstance(r, Tensor) else r for r in rest]
        return self.fn(first.float(), *rest).to(first.dtype)


@_Exact
def _tempered(scores, temperature):
    return scores.div(temperature).log_softmax(-1).exp()


@_Exact
def _entropy(weights):
    dead = weights.le(0)
    logs = weights.masked_fill(dead, 1.0).log()
    return weights.mul(logs).sum(-1).neg()


@_Exact
def _variance(queries, keys):
    n = queries.size(-2)
    p = queries.unsqueeze(-2).matmul(keys.unsqueeze(-1)).flatten(-3)
    centred = p - p.sum(-1, keepdim=True) / n
    return centred.unsqueeze(-2).matmul(centred.unsqueeze(-1)).squeeze(-1).squeeze(-1) / n


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    if temperature <= 0:
        raise ValueError("the temperature must be above 0")
    return _tempered(scores, temperature)


def entropy(weights: Tensor) -> Tensor:
    return _entropy(weights)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    return _variance(queries, keys)


def scale(scores: Tensor, d_key: int) -> Tensor:
    return scores.div(math.sqrt(d_key))
