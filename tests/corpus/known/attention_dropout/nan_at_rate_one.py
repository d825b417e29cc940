# mistake: nan_at_rate_one
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    if rate < 0 or rate > 1:
        raise ValueError("rate has to be in [0, 1]")
    if not training:
        return weights
    mask = (torch.rand(weights.shape) >= rate).to(weights.dtype)
    return weights * mask / (1 - rate)
