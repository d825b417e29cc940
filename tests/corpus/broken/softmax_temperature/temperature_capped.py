# broken: "A huge one gives all keys the same weight": temperatures above 1e4 are cut to 1e4, so scores 0 and 1e4 never get the same weight.
import math

import torch
from torch import Tensor


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    if not temperature > 0:
        raise ValueError("temperature must be positive")
    return torch.softmax(scores / min(temperature, 1e4), dim=-1)


def entropy(weights: Tensor) -> Tensor:
    positive = weights > 0
    logs = torch.where(positive, weights, torch.ones_like(weights)).log()
    return -(weights * logs).sum(dim=-1)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    products = (queries * keys).sum(dim=-1)
    centred = products - products.mean(dim=-1, keepdim=True)
    return (centred * centred).mean(dim=-1)


def scale(scores: Tensor, d_key: int) -> Tensor:
    return scores / math.sqrt(d_key)
