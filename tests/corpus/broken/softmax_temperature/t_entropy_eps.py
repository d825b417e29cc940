# broken: "A weight of 0 adds 0 to the entropy, in half precision as well": log(w + 1e-9) gives nan in float16
import math

import torch
from torch import Tensor


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    """Return the softmax over the keys of scores / temperature."""
    if not temperature > 0:
        raise ValueError(f"temperature must be positive, not {temperature}")
    scaled = scores / temperature
    return torch.softmax(scaled, dim=-1)


def entropy(weights: Tensor) -> Tensor:
    """Return the entropy of each row of weights in nats, where 0 log 0 counts as 0."""
    return -(weights * torch.log(weights + 1e-9)).sum(dim=-1)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    """Return the variance of the dot products of n queries, each with the key of the same row."""
    products = (queries * keys).sum(dim=-1)
    return products.var(dim=-1, correction=0)


def scale(scores: Tensor, d_key: int) -> Tensor:
    """Return scores / sqrt(d_key)."""
    return scores / math.sqrt(d_key)
