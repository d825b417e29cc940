# mistake: softmax_over_first_axis
import math

import torch
from torch import Tensor


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    s = scores.double()
    s = (s - s.max()) / temperature
    return torch.softmax(s, dim=0).to(scores.dtype)


def entropy(weights: Tensor) -> Tensor:
    w = weights.double()
    # clamp: 0 * log(tiny) is 0 and has a gradient
    surprise = -torch.log(w.clamp(min=1e-300))
    return (w * surprise).sum(dim=-1).to(weights.dtype)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    """Variance (divided by n) of the n row-wise dot products."""
    products = (queries * keys).sum(dim=-1)
    centred = products - products.mean(dim=-1, keepdim=True)
    return (centred**2).mean(dim=-1)


def scale(scores: Tensor, d_key: int) -> Tensor:
    root = math.sqrt(float(d_key))
    return torch.div(scores, root)
