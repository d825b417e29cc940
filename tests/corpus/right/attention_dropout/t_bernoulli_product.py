# right: a bernoulli mask is multiplied with the weights, the scale is in the mask
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    if rate < 0 or rate > 1:
        raise ValueError("rate")
    if not training:
        return weights.clone()
    keep = 1.0 - rate
    chance = torch.full(weights.shape, keep, dtype=torch.float64, device=weights.device)
    mask = torch.bernoulli(chance) / (keep or 1.0)
    return (weights * mask).to(weights.dtype)
