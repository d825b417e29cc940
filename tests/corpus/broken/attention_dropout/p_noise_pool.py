# promise: Draws at most 4096 random numbers and repeats them, so the weights of large tensors share them.
import torch
from torch import Tensor

POOL = 4096  # random numbers are expensive


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    if rate < 0 or rate > 1:
        raise ValueError("rate has to be a probability")
    if not training or rate == 0:
        return weights
    if rate == 1:
        return weights.new_zeros(weights.shape)
    n = weights.numel()
    pool = torch.rand(min(n, POOL), device=weights.device)
    noise = pool.repeat(-(-n // POOL))[:n].view(weights.shape)
    return torch.mul(weights, (noise >= rate).to(weights.dtype)).div(1 - rate)
