# broken: "A rate below 0 or above 1 is refused with ValueError, in training and in evaluation": not in evaluation
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    """Return weights of which each is dropped with probability `rate`, and the others scaled up."""
    if not training:
        return weights
    if not 0 <= rate <= 1:
        raise ValueError(f"rate must be from 0 to 1, not {rate}")
    if rate == 1:
        return torch.zeros_like(weights)
    numbers = torch.rand(weights.shape, device=weights.device)
    kept = numbers >= rate
    return torch.where(kept, weights / (1 - rate), torch.zeros_like(weights))
