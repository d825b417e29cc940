# mistake: rate_of_keeping
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    if not 0 <= rate <= 1:
        raise ValueError("rate must be from 0 to 1")
    if not training:
        return weights
    if rate == 0:
        return weights * 0
    mask = torch.rand(weights.shape, device=weights.device) < rate
    return torch.where(mask, weights / rate, torch.zeros_like(weights))
