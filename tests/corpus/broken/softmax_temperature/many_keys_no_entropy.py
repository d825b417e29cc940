# broken: "entropy = - sum over keys of weight * log(weight)": weights below 1e-4 are taken for 0, so with 20000 equal weights the entropy is 0, not log(20000).
import math

import torch
from torch import Tensor


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    if not temperature > 0:
        raise ValueError("temperature must be positive")
    return torch.softmax(scores / temperature, dim=-1)


def entropy(weights: Tensor) -> Tensor:
    positive = weights > 1e-4
    logs = torch.where(positive, weights, torch.ones_like(weights)).log()
    return -(weights * logs).sum(dim=-1)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    products = (queries * keys).sum(dim=-1)
    centred = products - products.mean(dim=-1, keepdim=True)
    return (centred * centred).mean(dim=-1)


def scale(scores: Tensor, d_key: int) -> Tensor:
    return scores / math.sqrt(d_key)
