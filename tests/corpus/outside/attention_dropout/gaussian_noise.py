# mistake: not in the catalogue: weights are multiplied by normal noise of mean 1, none becomes 0
import math

import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    if rate < 0.0 or rate > 1.0:
        raise ValueError("the rate has to be a probability")
    if not training or rate == 0:
        return weights
    if rate == 1:
        return 0 * weights
    spread = math.sqrt(rate / (1 - rate))  # as large as that of Bernoulli noise
    noise = 1 + spread * torch.randn(weights.shape)
    return weights * noise.to(weights.dtype)
