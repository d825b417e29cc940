# right: boolean bernoulli_ mask and torch.where, with rate 1 and evaluation as special cases
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    if not 0 <= rate <= 1:
        raise ValueError(f"rate must be from 0 to 1, not {rate}")
    if rate == 1 and training:
        return torch.zeros_like(weights)
    if not training:
        return weights
    keep = torch.empty(weights.shape, dtype=torch.bool, device=weights.device)
    keep.bernoulli_(1.0 - rate)
    return torch.where(keep, weights / (1.0 - rate), torch.zeros_like(weights))
