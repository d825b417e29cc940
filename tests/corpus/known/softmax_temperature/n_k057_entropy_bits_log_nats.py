# mistake: entropy_in_bits
import math

import torch
from torch import Tensor


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    """Return the softmax over the keys of scores / temperature."""
    if temperature <= 0:
        raise ValueError(f"temperature must be positive, got {temperature}")
    return torch.softmax(scores / temperature, dim=-1)


def entropy(weights: Tensor) -> Tensor:
    """Return the entropy of each row of weights in nats, where 0 log 0 counts as 0."""
    safe = torch.where(weights > 0, weights, 1.0)
    return -(safe * torch.log2(safe)).sum(dim=-1)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    """Return the variance of the dot products of n queries, each with the key of the same row."""
    products = (queries * keys).sum(dim=-1)
    mean = products.mean(dim=-1, keepdim=True)
    return (products - mean).pow(2).mean(dim=-1)


def scale(scores: Tensor, d_key: int) -> Tensor:
    """Return scores of vectors of size d_key, brought to a variance that does not depend on d_key."""
    return scores / math.sqrt(d_key)
