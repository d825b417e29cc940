# broken: "rate: the probability of being dropped": the random numbers have the dtype of the weights; in bfloat16 they are multiples of 1/256, so rate 0.0005 drops about 5 times too many.
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    if not 0 <= rate <= 1:
        raise ValueError("rate must be from 0 to 1")
    if not training or rate == 0:
        return weights
    if rate == 1:
        return torch.zeros_like(weights)
    numbers = torch.rand(weights.shape, dtype=weights.dtype, device=weights.device)
    kept = numbers >= rate
    return torch.where(kept, weights / (1 - rate), 0.0)
