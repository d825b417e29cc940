# mistake: divided_by_a_root
import math

import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    if not (0.0 <= rate <= 1.0):
        raise ValueError("rate is a probability")
    if training and rate > 0:
        if rate == 1:
            return torch.zeros_like(weights)
        p_keep = 1 - rate
        coin = torch.bernoulli(torch.full(weights.shape, p_keep, device=weights.device))
        return torch.mul(weights, coin.to(weights.dtype)) / math.sqrt(p_keep)
    return weights.clone()
