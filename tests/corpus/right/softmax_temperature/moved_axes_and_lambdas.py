# right: functional style: the keys moved to the front, lambdas and a decorator that widens and casts back
import functools
import math

import torch
from torch import Tensor


def _wide(function):
    """Run function on float64 copies of its tensors and give the result the first one's dtype."""

    @functools.wraps(function)
    def wrapped(first, *rest):
        widen = lambda x: x.double() if isinstance(x, Tensor) else x  # noqa: E731
        return function(widen(first), *map(widen, rest)).to(first.dtype)

    return wrapped


@_wide
def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    if not temperature > 0:
        raise ValueError("temperature: a number above 0 is needed")
    front = scores.movedim(-1, 0)
    e = front.sub(front.amax(0)).div(temperature).exp()
    return e.div(e.sum(0)).movedim(0, -1)


@_wide
def entropy(weights: Tensor) -> Tensor:
    front = weights.movedim(-1, 0)
    logs = torch.log(front + (front == 0))
    return front.mul(logs).sum(0).neg()


@_wide
def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    products = torch.linalg.vecdot(queries, keys).movedim(-1, 0)
    return products.sub(products.mean(0)).square().mean(0)


@_wide
def scale(scores: Tensor, d_key: int) -> Tensor:
    return scores.mul(math.pow(d_key, -0.5))
