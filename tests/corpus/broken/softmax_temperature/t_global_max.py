# broken: "Scores of any size give finite weights": the maximum of the whole tensor is subtracted, so a row far below it is 0 / 0
import math

import torch
from torch import Tensor


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    """Return the softmax over the keys of scores / temperature."""
    if not temperature > 0:
        raise ValueError(f"temperature must be positive, not {temperature}")
    scaled = scores / temperature
    powers = torch.exp(scaled - scaled.max())
    return powers / powers.sum(dim=-1, keepdim=True)


def entropy(weights: Tensor) -> Tensor:
    """Return the entropy of each row of weights in nats, where 0 log 0 counts as 0."""
    safe = torch.where(weights > 0, weights, torch.ones_like(weights))
    return -(weights * torch.log(safe)).sum(dim=-1)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    """Return the variance of the dot products of n queries, each with the key of the same row."""
    products = (queries * keys).sum(dim=-1)
    return products.var(dim=-1, correction=0)


def scale(scores: Tensor, d_key: int) -> Tensor:
    """Return scores / sqrt(d_key)."""
    return scores / math.sqrt(d_key)
