# mistake: same_in_each_call
import torch
from torch import Tensor


SEED = 0


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    """Reproducible dropping."""
    if rate > 1 or rate < 0:
        raise ValueError("rate out of range")
    if not training:
        return weights
    if rate == 1:
        return weights * 0.0
    torch.manual_seed(SEED)
    keep = torch.rand(weights.shape) >= rate
    return (weights / (1 - rate)) * keep
