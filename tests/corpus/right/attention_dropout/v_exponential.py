# right: the coin of each weight is an exponential waiting time against -log(1 - rate), which is as good as a uniform number
import math

import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    if rate < 0 or rate > 1:
        raise ValueError("rate must be from 0 to 1")
    if not training or rate == 0:
        return weights.clone()
    if rate == 1:
        return weights * 0.0
    waiting = torch.empty(weights.shape, dtype=torch.float64, device=weights.device).exponential_()
    gone = waiting < -math.log1p(-rate)
    return weights.masked_fill(gone, 0.0) / (1.0 - rate)
