# mistake: not in the catalogue: the random numbers are normal (randn), not uniform, so the probability is not the rate
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    if rate < 0 or rate > 1:
        raise ValueError("rate must be between 0 and 1")
    if not training:
        return weights
    if rate in (0, 1):
        return weights * (1 - rate)
    noise = torch.randn(weights.shape).abs()
    return (weights / (1 - rate)).masked_fill(noise < rate, 0.0)
