# style: unusual
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    """Return weights of which each is dropped with probability `rate`, and the others scaled up."""
    if rate < 0 or rate > 1:
        raise ValueError("rate has to be between 0 and 1")
    if training:
        gone = torch.rand(weights.shape, device=weights.device, dtype=torch.float64) < rate
        scale = 1 if rate == 1 else 1 / (1 - rate)
        return (weights * scale).masked_fill(gone, 0)
    return weights
