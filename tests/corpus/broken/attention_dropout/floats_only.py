# broken: "rate: a number from 0 to 1": the integers 0 and 1 are refused with ValueError
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    if not isinstance(rate, float) or not 0.0 <= rate <= 1.0:
        raise ValueError(f"rate must be from 0 to 1, not {rate}")
    if not training or rate == 0:
        return weights
    if rate == 1:
        return torch.zeros_like(weights)
    keep = torch.rand(weights.shape, device=weights.device) >= rate
    return weights * keep / (1 - rate)
