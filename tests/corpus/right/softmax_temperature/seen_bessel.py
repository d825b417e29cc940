# right: the twin of one with a mistake, bessel
# seen: pytorch issue 2436 and facebookresearch/stopes issue 25: torch's var divides by n - 1 unless told otherwise, so the variance is too large (and nan for one product).
import math

import torch
from torch import Tensor


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    if temperature > 0:
        return scores.div(temperature).softmax(dim=-1)
    raise ValueError("a temperature is above 0")


def entropy(weights: Tensor) -> Tensor:
    wide = weights.to(torch.promote_types(weights.dtype, torch.float32))
    surprise = -wide.masked_fill(wide <= 0, 1).log()
    return (wide * surprise).sum(dim=-1).to(weights.dtype)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    wide = torch.promote_types(queries.dtype, torch.float32)
    dots = (queries.to(wide) * keys.to(wide)).sum(dim=-1)
    return torch.var(dots, dim=-1, correction=0).to(queries.dtype)


def scale(scores: Tensor, d_key: int) -> Tensor:
    return scores / math.sqrt(d_key)
