# right: entropy by boolean indexing into fresh zeros, manual exp / sum, matmul for dot products
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
    positive = weights > 0
    terms = torch.zeros_like(weights)
    kept = weights[positive]
    terms[positive] = -kept * kept.log()
    return terms.sum(-1)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    q, k = queries.unsqueeze(-2), keys.unsqueeze(-1)
    dots = torch.matmul(q, k)[..., 0, 0]
    deviation = dots - dots.mean(-1, True)
    return deviation.square().mean(-1)


def scale(scores: Tensor, d_key: int) -> Tensor:
    return scores.div(math.sqrt(d_key))
