# mistake: entropy_as_a_share
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
    """Entropy relative to its largest value, log(n_keys)."""
    w = weights.double()
    h = -(w * w.masked_fill(w == 0, 1).log()).sum(-1)
    largest = math.log(weights.shape[-1]) or 1.0
    return (h / largest).to(weights.dtype)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    prod = (queries.unsqueeze(-2) @ keys.unsqueeze(-1)).squeeze(-1).squeeze(-1)
    n = prod.shape[-1]
    mu = prod.sum(-1, keepdim=True) / n
    return (prod - mu).pow(2).sum(-1) / n


def scale(scores: Tensor, d_key: int) -> Tensor:
    """Divide by the root of d_key."""
    return scores / math.sqrt(d_key)
