"""Dropout with a mask that holds the factor."""

import torch


def drop(weights, rate, training):
    if rate < 0 or rate > 1:
        raise ValueError("rate must be between 0 and 1")
    if not training or rate == 0:
        return weights.clone()
    if rate == 1:
        return torch.zeros_like(weights) * weights
    mask = torch.empty_like(weights).bernoulli_(1 - rate) / (1 - rate)
    return torch.einsum("...,...->...", weights, mask)
