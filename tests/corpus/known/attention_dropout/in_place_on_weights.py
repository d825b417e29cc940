# mistake: writes_into_argument
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    if rate < 0 or rate > 1:
        raise ValueError("rate must lie in [0, 1]")
    if training and rate > 0:
        chosen = torch.rand(weights.shape, device=weights.device) < rate
        weights[chosen] = 0
        if rate < 1:
            weights /= 1 - rate
    return weights
