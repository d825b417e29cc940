# right: softmax as 1 / sum of exp of differences, variance from pairwise differences, refusal by a helper
import math

import torch
from torch import Tensor


def _refuse_unless(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    """weight_i = 1 / sum_j exp((score_j - score_i) / temperature)."""
    _refuse_unless(temperature > 0, f"temperature {temperature} is not above 0")
    s = scores.double()
    gap = (s.unsqueeze(-2) - s.unsqueeze(-1)) / temperature  # [i, j] = s_j - s_i
    return torch.exp(-torch.logsumexp(gap.clamp(max=1e300), dim=-1)).to(scores.dtype)


def entropy(weights: Tensor) -> Tensor:
    """0 log 0 counts as 0: below the smallest positive number the log stays put."""
    smallest = torch.finfo(torch.float64).tiny
    w = weights.to(torch.float64)
    return torch.einsum("...k,...k->...", w, -w.clamp_min(smallest).log()).to(weights.dtype)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    """Half the mean squared difference of all ordered pairs is the variance."""
    p = (queries.double() * keys.double()).sum(-1)
    pairs = p.unsqueeze(-1) - p.unsqueeze(-2)
    return (pairs**2).mean((-2, -1)).div(2).to(queries.dtype)


def scale(scores: Tensor, d_key: int) -> Tensor:
    return scores * (1.0 / math.sqrt(d_key))
