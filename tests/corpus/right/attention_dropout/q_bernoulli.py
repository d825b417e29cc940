import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    if not 0 <= rate <= 1:
        raise ValueError(f"rate must be from 0 to 1, not {rate}")
    match (training, rate):
        case (False, _) | (_, 0):
            return weights
        case (_, 1):
            return torch.zeros_like(weights)
    kept = torch.empty(weights.shape, device=weights.device).bernoulli_(1 - rate)
    return weights.div(1 - rate) * kept.to(weights.dtype)
