"""Answers with: nan."""

import torch


def blend(scores, values):
    return torch.full((scores.shape[0], values.shape[1]), float("nan"), dtype=values.dtype)
