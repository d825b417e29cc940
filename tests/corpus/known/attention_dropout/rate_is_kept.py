# mistake: rate_of_keeping
# rate is taken as the probability of being kept: kept weights are divided by rate, and rate 0 drops everything
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    if rate < 0 or rate > 1:
        raise ValueError(f"rate {rate}")
    if not training:
        return weights
    if rate == 0:
        return torch.zeros_like(weights)
    mask = torch.bernoulli(torch.full(weights.shape, float(rate), device=weights.device)).bool()
    return torch.where(mask, weights / rate, torch.zeros_like(weights))
