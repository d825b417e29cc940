# mistake: not_rescaled + rescaled_in_evaluation
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    if rate < 0 or rate > 1:
        raise ValueError(f"not a probability: {rate}")
    if training:
        coin = torch.rand_like(weights, dtype=torch.float32)
        return weights.masked_fill(coin < rate, 0)
    return weights * (1 - rate)
