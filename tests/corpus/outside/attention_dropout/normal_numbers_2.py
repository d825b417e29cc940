# mistake: torch.randn is written for torch.rand, so the share of dropped weights is that of a normal distribution.
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    if not 0 <= rate <= 1:
        raise ValueError(f"rate must be from 0 to 1, not {rate}")
    if not training or rate == 0:
        return weights
    if rate == 1:
        return torch.zeros_like(weights)
    keep = torch.randn(weights.shape, device=weights.device) >= rate
    return weights * keep / (1 - rate)
