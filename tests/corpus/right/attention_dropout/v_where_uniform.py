# right: uniform numbers in float32 are compared once, torch.where picks zeros or scaled weights, the rate 1 never divides
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    if not 0 <= rate <= 1:
        raise ValueError(f"{rate} is no probability")
    if not training:
        return weights
    if rate == 1:
        return torch.zeros_like(weights)
    uniform = torch.rand(weights.shape, device=weights.device)
    return torch.where(uniform < rate, torch.zeros_like(weights), weights / (1 - rate))
