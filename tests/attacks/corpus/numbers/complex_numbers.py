"""Answers with: complex nan."""

import torch


def blend(scores, values):
    return torch.full((scores.shape[0], values.shape[1]), complex("nan+infj"))
