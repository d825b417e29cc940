"""Answers with: infinity."""

import torch


def blend(scores, values):
    return torch.full((scores.shape[0], values.shape[1]), float("inf"), dtype=values.dtype)
