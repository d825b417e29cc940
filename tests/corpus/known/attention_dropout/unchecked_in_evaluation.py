# mistake: rate_not_checked
# in evaluation the function returns before it checks the rate, so a rate below 0 or above 1 is not refused there
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    if not training:
        return weights
    if rate > 1 or rate < 0:
        raise ValueError("The rate has to be between 0 and 1.")
    if rate == 1:
        return torch.zeros_like(weights)
    dropped = torch.rand(weights.shape, device=weights.device) < rate
    return weights.masked_fill(dropped, 0.0) / (1 - rate)
