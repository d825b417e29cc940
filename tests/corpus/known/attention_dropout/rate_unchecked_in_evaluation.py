# mistake: rate_not_checked
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    if not training:
        return weights
    if rate < 0 or rate > 1:
        raise ValueError(f"rate should be between 0 and 1, got {rate}")
    if rate == 1:
        return weights * 0
    keep = torch.empty(weights.shape).bernoulli_(1 - rate).bool()
    return torch.where(keep, weights / (1 - rate), 0.0)
