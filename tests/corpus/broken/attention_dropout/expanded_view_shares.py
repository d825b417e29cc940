# broken: "weights may be a view": a view made by expand gets one number for all its copies of a weight, so its batch items are dropped together.
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    if not 0 <= rate <= 1:
        raise ValueError("rate must be from 0 to 1")
    if not training or rate == 0:
        return weights
    if rate == 1:
        return torch.zeros_like(weights)
    numbers = torch.rand(weights.shape, device=weights.device)
    for axis, stride in enumerate(weights.stride()):
        if stride == 0:
            numbers = numbers.narrow(axis, 0, 1).expand_as(numbers) if weights.shape[axis] else numbers
    kept = numbers >= rate
    return torch.where(kept, weights / (1 - rate), 0.0)
