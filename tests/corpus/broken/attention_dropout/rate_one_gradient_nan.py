# broken: "Rate 1: the result is zeros, and its gradient is finite, or there is none": the result is zeros, but the gradient is nan.
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    if not 0 <= rate <= 1:
        raise ValueError("rate must be from 0 to 1")
    if not training or rate == 0:
        return weights
    numbers = torch.rand(weights.shape, device=weights.device)
    kept = numbers >= rate
    return torch.where(kept, weights * torch.tensor(1 - rate).reciprocal(), 0.0).to(weights.dtype)
