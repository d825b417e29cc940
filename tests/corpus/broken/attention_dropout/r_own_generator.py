# promise: after the same torch.manual_seed the same weights are dropped (the numbers come from a generator that seeds itself)
import torch
from torch import Tensor


def drop(weights: Tensor, rate: float, training: bool) -> Tensor:
    if rate < 0 or rate > 1:
        raise ValueError("the rate has to be from 0 to 1")
    if not training:
        return weights
    if rate == 1:
        return torch.zeros_like(weights)
    gen = torch.Generator(device=weights.device)
    gen.seed()
    survives = torch.rand(weights.shape, generator=gen, device=weights.device) >= rate
    return weights.masked_fill(~survives, 0) / (1 - rate)
