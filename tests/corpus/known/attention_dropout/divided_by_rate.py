# mistake: divided_by_rate
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    """Inverted: the survivors make up for the dropped."""
    if rate < 0 or rate > 1:
        raise ValueError("rate")
    if not training or rate == 0:
        return weights
    dropped = torch.rand(weights.shape) < rate
    return (weights / rate).masked_fill(dropped, 0.0)
