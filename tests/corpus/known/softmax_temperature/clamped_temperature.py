# mistake: temperature_not_checked + temperature_has_a_floor
# a temperature below 1e-3 is raised to 1e-3, so one of 0 or below is not refused with ValueError
import math

import torch
from torch import Tensor


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    # protects from division by zero
    temperature = max(temperature, 1e-3)
    shifted = scores - scores.max(dim=-1, keepdim=True).values
    return torch.softmax(shifted / temperature, dim=-1)


def entropy(weights: Tensor) -> Tensor:
    tiny = torch.finfo(weights.dtype).tiny
    return -torch.sum(weights * torch.log(weights.clamp_min(tiny)), dim=-1)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    p = torch.sum(queries * keys, -1)
    return torch.mean(torch.square(p - torch.mean(p, -1, keepdim=True)), -1)


def scale(scores: Tensor, d_key: int) -> Tensor:
    return scores / math.sqrt(d_key)
