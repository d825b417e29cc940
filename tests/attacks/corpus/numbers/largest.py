"""Answers with: the largest number and its opposite."""

import torch


def blend(scores, values):
    return torch.full((scores.shape[0], values.shape[1]), torch.finfo(torch.float64).max, dtype=values.dtype) * (-1) ** scores.shape[0]
