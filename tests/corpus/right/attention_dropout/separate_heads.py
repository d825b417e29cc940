"""Dropout that fills the dropped places, then divides."""

import torch


def keep_mask(weights, rate):
    """True where a weight is kept."""
    return torch.rand_like(weights, dtype=torch.float32) > rate


def drop(weights, rate, training):
    assert 0.0 <= rate <= 1.0
    if not training:
        return weights
    if rate == 1.0:
        return weights * 0.0
    return weights.masked_fill(~keep_mask(weights, rate), 0.0) / (1.0 - rate)
