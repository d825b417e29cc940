# broken: "Every weight is dropped or kept on its own": weights with four axes (batch, heads, queries, keys) get one random number for all heads
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    if not 0 <= rate <= 1:
        raise ValueError(f"rate must be from 0 to 1, not {rate}")
    if not training or rate == 0:
        return weights
    if rate == 1:
        return torch.zeros_like(weights)
    shape = list(weights.shape)
    if len(shape) == 4:
        shape[1] = 1
    keep = torch.rand(shape, device=weights.device) >= rate
    return weights * keep / (1 - rate)
