# mistake: not in the catalogue: The variance is taken over all n * d_key products of single numbers and multiplied by d_key, not over the n dot products.
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
    return -(safe * torch.log(safe)).sum(dim=-1)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    """Return the variance of the dot products of n queries, each with the key of the same row."""
    # variances of independent terms add up: d_key terms have d_key times the variance of one
    terms = (queries * keys).flatten(-2)
    centred = terms - terms.mean(dim=-1, keepdim=True)
    return queries.shape[-1] * centred.square().mean(dim=-1)


def scale(scores: Tensor, d_key: int) -> Tensor:
    """Return scores of vectors of size d_key, brought to a variance that does not depend on d_key."""
    return scores / math.sqrt(d_key)
