# broken: "Leading axes may be several. Inputs may be views": with two leading axes, views that are not contiguous raise a RuntimeError.
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
    if queries.dim() > 3:
        lead, n, d_key = queries.shape[:-2], queries.shape[-2], queries.shape[-1]
        flat = variance_of_products(queries.view(-1, n, d_key), keys.view(-1, n, d_key))
        return flat.reshape(lead)
    products = (queries * keys).sum(dim=-1)
    centred = products - products.mean(dim=-1, keepdim=True)
    return (centred * centred).mean(dim=-1)


def scale(scores: Tensor, d_key: int) -> Tensor:
    return scores / math.sqrt(d_key)
