# mistake: temperature_not_checked
import math

import torch
from torch import Tensor


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    """Softmax with temperature."""
    if temperature < 0:
        raise ValueError("negative temperature")
    z = scores.double()
    z = z - z.max(dim=-1, keepdim=True).values
    return torch.softmax(z / temperature, dim=-1).to(scores.dtype)


def entropy(weights: Tensor) -> Tensor:
    """Entropy in nats, 0 log 0 = 0."""
    safe = torch.where(weights > 0, weights, torch.ones_like(weights))
    return -(weights * safe.log()).sum(dim=-1)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    dots = torch.einsum("...nd,...nd->...n", queries, keys)
    return dots.var(dim=-1, unbiased=False)


def scale(scores: Tensor, d_key: int) -> Tensor:
    root = math.sqrt(float(d_key))
    return torch.div(scores, root)
