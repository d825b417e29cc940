"""Answers with: shapes of sixteen dimensions, of zero and of a billion."""

import torch


def blend(scores, values):
    if scores.any():
        return torch.empty([0] + [10**9], dtype=values.dtype)
    return torch.zeros([1] * 17, dtype=values.dtype)
