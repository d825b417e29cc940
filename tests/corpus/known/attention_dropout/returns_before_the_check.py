# mistake: rate_not_checked
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    if not training:
        return weights
    if not 0 <= rate <= 1:
        raise ValueError(f"rate must be from 0 to 1, not {rate}")
    if rate == 1:
        return torch.zeros_like(weights)
    keep = torch.rand(weights.shape, device=weights.device) >= rate
    return weights * keep / (1 - rate)
