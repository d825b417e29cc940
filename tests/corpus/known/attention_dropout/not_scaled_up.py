# mistake: not_rescaled
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    """Zero each weight with probability rate."""
    if rate < 0 or rate > 1:
        raise ValueError(f"rate {rate} is not between 0 and 1")
    if not training:
        return weights
    keep = torch.rand(weights.shape) >= rate
    return weights * keep
