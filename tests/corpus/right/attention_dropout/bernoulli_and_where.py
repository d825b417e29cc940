# right: bernoulli_ on an empty tensor, torch.where with a scalar
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    """Each weight stays with probability 1 - rate and is divided by it."""
    if not 0 <= rate <= 1:
        raise ValueError(f"rate must be from 0 to 1, not {rate}")
    if not training or rate == 0:
        return weights.clone()
    keep = 1 - rate
    kept = torch.empty(weights.shape, dtype=torch.bool, device=weights.device).bernoulli_(keep)
    return torch.where(kept, weights / (keep or 1.0), 0.0)
