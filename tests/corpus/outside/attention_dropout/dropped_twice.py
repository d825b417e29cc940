# mistake: not in the catalogue: two masks are multiplied, one of them shared by the batch, so the probability is 1 - (1 - rate)^2
import torch
from torch import Tensor


def _mask(shape, rate):
    return torch.rand(shape) >= rate


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    if not (0 <= rate <= 1):
        raise ValueError("rate must be a probability")
    if not training:
        return weights
    if rate == 1:
        return weights * 0
    per_item = _mask(weights.shape, rate)
    per_pair = _mask(weights.shape[-2:], rate)
    return (weights / (1 - rate)) * per_item * per_pair
