"""Answers with: types of eight bits, or one."""

import torch


def blend(scores, values):
    return torch.ones((scores.shape[0], values.shape[1]), dtype=torch.int8 if scores.any() else torch.bool)
