"""Dropout, one where around one rand."""

import torch


def drop(weights, rate, training):
    if not 0 <= rate <= 1:
        raise ValueError(f"{rate=}")
    p = rate if training else 0
    return weights.div(max(1 - p, 1e-9)).where(torch.rand(weights.shape) >= p, 0)
