# broken: "Rate 0 drops nothing": a weight is kept if its random number is above the rate; the numbers have the dtype of the weights, and in bfloat16 one in 256 is exactly 0 (float16: one in 2048), so weights are dropped at rate 0
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    if not 0 <= rate <= 1:
        raise ValueError(f"rate must be from 0 to 1, not {rate}")
    if not training:
        return weights
    if rate == 1:
        return torch.zeros_like(weights)
    keep = torch.rand_like(weights) > rate
    return weights * keep / (1 - rate)
