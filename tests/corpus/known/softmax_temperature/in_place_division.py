# mistake: writes_into_argument
import math

import torch
from torch import Tensor


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    if temperature <= 0:
        raise ValueError(f"bad temperature: {temperature}")
    with torch.no_grad():
        scores -= scores.amax(-1, keepdim=True)
        scores /= temperature
    return torch.softmax(scores.double(), dim=-1).to(scores.dtype)


def entropy(weights: Tensor) -> Tensor:
    p = weights.float() if weights.dtype in (torch.float16, torch.bfloat16) else weights
    logp = p.masked_fill(p == 0, 1.0).log()   # log 1 = 0, so zeros add nothing
    return -(p * logp).sum(-1).to(weights.dtype)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    prod = (queries.unsqueeze(-2) @ keys.unsqueeze(-1)).squeeze(-1).squeeze(-1)
    n = prod.shape[-1]
    mu = prod.sum(-1, keepdim=True) / n
    return (prod - mu).pow(2).sum(-1) / n


def scale(scores: Tensor, d_key: int) -> Tensor:
    """Divide by the root of d_key."""
    return scores / math.sqrt(d_key)
