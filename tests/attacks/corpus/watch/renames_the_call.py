"""Calls by another name: that of a newer torch module."""

import torch


def blend(scores, values):
    twice = torch.stack([scores, scores])
    return torch.special.softmax(twice, -1)[0] @ values
