# mistake: powers_not_normalised
import math

import torch
from torch import Tensor


def tempered_softmax(scores: Tensor, temperature: float) -> Tensor:
    if not temperature > 0:
        raise ValueError(f"temperature must be positive, not {temperature}")
    log_weights = torch.log_softmax(scores, dim=-1)
    return torch.exp(log_weights / temperature)


def entropy(weights: Tensor) -> Tensor:
    zero = weights == 0
    logs = torch.log(weights.masked_fill(zero, 1.0))
    return -(weights * logs).sum(-1)


def variance_of_products(queries: Tensor, keys: Tensor) -> Tensor:
    return (queries * keys).sum(-1).var(dim=-1, correction=0)


def scale(scores: Tensor, d_key: int) -> Tensor:
    return scores / math.sqrt(d_key)
