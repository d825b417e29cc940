# right: waiting times from exponential_: dropped if longer than -log(rate)
import math

import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    """P(time > -log(rate)) = rate for an exponential time."""
    match rate, bool(training):
        case r, _ if not (0 <= r <= 1):
            raise ValueError(f"rate = {r}")
        case _, False:
            return weights
        case 0, _:
            return weights + 0
        case 1, _:
            return weights * 0
    times = torch.empty(weights.shape, dtype=torch.float64).exponential_()
    stays = times <= -math.log(rate)
    return weights.div(1 - rate).mul(stays)
