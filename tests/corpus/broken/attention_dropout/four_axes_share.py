# broken: "the batch items, the queries and the keys of a query all have random numbers of their own": with four axes, all items of the first one share their numbers.
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    if not 0 <= rate <= 1:
        raise ValueError("rate must be from 0 to 1")
    if not training or rate == 0:
        return weights
    if rate == 1:
        return torch.zeros_like(weights)
    numbers = torch.rand(weights.shape[-3:], device=weights.device)
    kept = numbers >= rate
    return torch.where(kept, weights / (1 - rate), 0.0)
