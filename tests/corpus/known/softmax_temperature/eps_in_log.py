# mistake: epsilon_in_the_logarithm
import math

import torch
from torch import Tensor


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    """Softmax of scores / temperature over the keys."""
    if not temperature > 0:
        raise ValueError(f"temperature has to be positive, not {temperature}")
    wide = scores.double()
    wide = wide - wide.amax(dim=-1, keepdim=True)
    return torch.softmax(wide / temperature, dim=-1).to(scores.dtype)


EPS = 1e-9


def entropy(weights: Tensor) -> Tensor:
    """-sum w log w, with a small eps against log 0."""
    return -(weights * torch.log(weights + EPS)).sum(dim=-1)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    dots = torch.einsum("...nd,...nd->...n", queries, keys)
    return dots.var(dim=-1, unbiased=False)


def scale(scores: Tensor, d_key: int) -> Tensor:
    """Divide by the root of d_key."""
    return scores / math.sqrt(d_key)
