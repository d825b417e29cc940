"""Answers with: one infinity among ordinary numbers."""

import torch


def blend(scores, values):
    return values.new_zeros(scores.shape[0], values.shape[1]).index_fill_(0, torch.tensor([0]), float("-inf"))
