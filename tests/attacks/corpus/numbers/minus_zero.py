"""Answers with: minus zero."""

import torch


def blend(scores, values):
    return torch.full((scores.shape[0], values.shape[1]), -0.0, dtype=values.dtype)
