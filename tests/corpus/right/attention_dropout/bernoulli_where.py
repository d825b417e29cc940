# right: bernoulli_ on a bool tensor, where and a copy in every case
import torch
from torch import Tensor


def survivors(like: Tensor, probability: float) -> Tensor:
    return torch.empty_like(like, dtype=torch.bool).bernoulli_(probability)


def drop(weights, rate, training):
    if rate < 0 or rate > 1:
        raise ValueError("the rate is a probability")
    p_keep = 1.0 - rate if training else 1.0
    if p_keep == 0.0:
        return weights.detach() * 0
    return torch.where(survivors(weights, p_keep), weights / p_keep, 0.0).to(weights.dtype)
