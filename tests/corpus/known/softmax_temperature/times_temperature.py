# mistake: multiplied_by_temperature
import torch
from torch import Tensor


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    """Weights of the keys at this temperature."""
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    hot = scores.double() * temperature
    return hot.softmax(dim=-1).to(scores.dtype)


def entropy(weights: Tensor) -> Tensor:
    p = weights.float() if weights.dtype in (torch.float16, torch.bfloat16) else weights
    logp = p.masked_fill(p == 0, 1.0).log()   # log 1 = 0, so zeros add nothing
    return -(p * logp).sum(-1).to(weights.dtype)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    dots = torch.einsum("...nd,...nd->...n", queries, keys)
    return dots.var(dim=-1, unbiased=False)


def scale(scores: Tensor, d_key: int) -> Tensor:
    return scores / d_key**0.5
