# mistake: divided_by_rate
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    """Return weights of which each is dropped with probability `rate`, and the others scaled up."""
    if not 0 <= rate <= 1:
        raise ValueError(f"rate must be from 0 to 1, not {rate}")
    if not training or rate == 0:
        return weights
    if rate == 1:
        return torch.zeros_like(weights)
    numbers = torch.rand(weights.shape, device=weights.device)
    kept = numbers >= rate
    return torch.where(kept, weights / rate, torch.zeros_like(weights))
