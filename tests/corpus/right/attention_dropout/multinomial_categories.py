# right: two categories drawn by torch.multinomial, index into a table of zeros and scaled weights, refusal by a decorator
import functools

import torch
from torch import Tensor


def _probability(function):
    @functools.wraps(function)
    def wrapper(weights, rate, training):
        try:
            assert 0 <= rate <= 1
        except AssertionError:
            raise ValueError(f"rate {rate} is outside of [0, 1]") from None
        return function(weights, rate, training)

    return wrapper


@_probability
def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    if not training or rate == 0:
        return weights
    if rate == 1:
        return torch.mul(weights, 0)
    chances = torch.tensor([rate, 1 - rate], dtype=torch.float64, device=weights.device)
    draws = torch.multinomial(chances, weights.numel(), replacement=True).reshape(weights.shape)
    choices = torch.stack([torch.zeros_like(weights), weights / (1 - rate)], dim=0)
    return choices.gather(0, draws.unsqueeze(0)).squeeze(0)
