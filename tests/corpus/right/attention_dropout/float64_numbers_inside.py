# right: float64 random numbers and arithmetic inside, cast back, divisor chosen per case
import torch
from torch import Tensor


def _check(rate: float) -> float:
    if rate != rate or rate < 0 or rate > 1:
        raise ValueError(f"{rate} is no probability")
    return float(rate)


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    rate = _check(rate)
    if not training:
        return weights
    numbers = torch.rand(weights.shape, dtype=torch.float64, device=weights.device)
    factor = (numbers >= rate).double()
    divisor = 1.0 - rate if rate < 1.0 else 1.0
    return (weights.double() * factor / divisor).to(weights.dtype)
