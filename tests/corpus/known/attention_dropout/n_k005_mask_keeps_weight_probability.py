# mistake: rate_of_keeping
import torch
from torch import Tensor


def drop(weights, rate, training):
    if not 0 <= rate <= 1:
        raise ValueError(f"bad rate {rate}")
    # nothing to do in evaluation
    if not training:
        return weights
    if rate == 1:
        return torch.zeros_like(weights)
    if rate == 0:
        return weights
    # one random number for each weight
    mask = (torch.rand(weights.shape, device=weights.device) < rate).to(weights.dtype)
    return mask * weights / (1.0 - rate)
