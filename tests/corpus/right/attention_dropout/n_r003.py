# style: unusual
import torch
from torch import Tensor


def _check(rate: float) -> None:
    if not (0.0 <= rate <= 1.0):
        raise ValueError(f"rate must lie in [0, 1], got {rate}")


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    _check(rate)
    if not training or rate == 0:
        return weights
    if rate == 1:
        return torch.zeros_like(weights)
    survive = 1.0 - rate
    # one coin for each number; always in float32 so that half precision has fair coins
    p = torch.full(weights.shape, survive, dtype=torch.float32, device=weights.device)
    coins = torch.bernoulli(p).bool()
    return torch.where(coins, weights / survive, torch.zeros((), dtype=weights.dtype, device=weights.device))
