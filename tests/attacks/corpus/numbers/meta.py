"""Answers with: a tensor with a shape and no numbers."""

import torch


def blend(scores, values):
    return torch.empty(scores.shape[0], values.shape[1], device="meta")
