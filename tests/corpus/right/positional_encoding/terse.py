"""Positional encoding, a where of sines and cosines."""

import torch
from torch import nn


def sinusoidal(context_length, d_model, base=10000.0):
    j = torch.arange(d_model)
    a = torch.arange(context_length)[:, None] / base ** (j // 2 * 2 / d_model)
    return torch.where(j % 2 > 0, a.cos(), a.sin())


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, context_length, dropout=0.0):
        super().__init__()
        self.drop, self.n = nn.Dropout(dropout), context_length
        self.register_buffer("e", sinusoidal(context_length, d_model), False)

    def forward(self, x):
        if x.shape[1] > self.n:
            raise ValueError(x.shape)
        return self.drop(x + self.e[: x.shape[1]])


def permutation_gap(block, x, permutation):
    return float((block(x[:, permutation]) - block(x)[:, permutation]).abs().max())
