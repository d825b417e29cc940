# mistake: temperature_not_checked
import math

import torch
from torch import Tensor


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    """Return the softmax over the keys of scores / temperature."""
    if not temperature:
        raise ValueError("the temperature must be above 0")
    return torch.softmax(scores / temperature, dim=-1)


def entropy(weights: Tensor) -> Tensor:
    """Return the entropy of each row of weights in nats."""
    positive = torch.where(weights > 0, weights, 1.0)
    return -(weights * torch.log(positive)).sum(dim=-1)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    """Return the variance of the dot products of each query with the key of the same row."""
    products = (queries * keys).sum(dim=-1)
    deviations = products - products.mean(dim=-1, keepdim=True)
    return (deviations**2).mean(dim=-1)


def scale(scores: Tensor, d_key: int) -> Tensor:
    """Return scores / sqrt(d_key)."""
    return scores / math.sqrt(d_key)
