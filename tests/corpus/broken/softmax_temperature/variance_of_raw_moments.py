# broken: "mean over the n products of (product - mean of products)^2": computed as mean of squares minus square of mean, which loses all digits if the products are far from 0.
import math

import torch
from torch import Tensor


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    if not temperature > 0:
        raise ValueError("temperature must be positive")
    return torch.softmax(scores / temperature, dim=-1)


def entropy(weights: Tensor) -> Tensor:
    positive = weights > 0
    logs = torch.where(positive, weights, torch.ones_like(weights)).log()
    return -(weights * logs).sum(dim=-1)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    products = (queries * keys).sum(dim=-1)
    mean = products.mean(dim=-1)
    return ((products * products).mean(dim=-1) - mean * mean).clamp(min=0)


def scale(scores: Tensor, d_key: int) -> Tensor:
    return scores / math.sqrt(d_key)
