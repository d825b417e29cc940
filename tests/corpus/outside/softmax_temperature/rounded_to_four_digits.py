# mistake: not in the catalogue: the weights are rounded to 4 digits as printed in the example, which also kills the gradient
import math

import torch
from torch import Tensor


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    """Weights with four digits after the point."""
    if not temperature > 0:
        raise ValueError(temperature)
    s = scores.double()
    w = torch.softmax((s - s.amax(-1, keepdim=True)) / temperature, -1)
    return torch.round(w, decimals=4).to(scores.dtype)


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
