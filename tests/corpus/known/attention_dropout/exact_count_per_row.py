# mistake: fixed_number_of_keys
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    """Drop the share `rate` of the keys of each query."""
    if rate < 0 or rate > 1:
        raise ValueError(f"rate {rate}")
    if not training:
        return weights
    if rate == 1:
        return weights * 0
    n_keys = weights.shape[-1]
    order = torch.rand(weights.shape).argsort(dim=-1).argsort(dim=-1)
    return (weights / (1 - rate)).masked_fill(order < round(rate * n_keys), 0)
