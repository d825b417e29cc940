# mistake: dropped_in_evaluation + limits_refused
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    if not 0 <= rate < 1:
        raise ValueError("rate must be at least 0 and below 1")
    p_keep = 1.0 - rate
    mask = torch.bernoulli(torch.full(weights.shape, p_keep))
    return (weights * mask.to(weights.dtype)) / p_keep
