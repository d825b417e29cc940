# mistake: standard_deviation + scaled_up
import math

import torch
from torch import Tensor


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    # cold -> sharp, hot -> flat
    if temperature <= 0:
        raise ValueError("temperature <= 0")
    x = scores.to(torch.float64)
    top = x.max(dim=-1, keepdim=True)[0].detach()
    e = torch.exp((x - top) / temperature)
    p = e / e.sum(dim=-1, keepdim=True)
    return p.to(scores.dtype)


def entropy(weights: Tensor) -> Tensor:
    p = weights.float() if weights.dtype in (torch.float16, torch.bfloat16) else weights
    logp = p.masked_fill(p == 0, 1.0).log()   # log 1 = 0, so zeros add nothing
    return -(p * logp).sum(-1).to(weights.dtype)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    """Spread of the dot products."""
    p = (queries * keys).sum(-1)
    mean = p.mean(-1, keepdim=True)
    return ((p - mean) ** 2).mean(-1).sqrt()


def scale(scores: Tensor, d_key: int) -> Tensor:
    return scores * math.sqrt(d_key)
