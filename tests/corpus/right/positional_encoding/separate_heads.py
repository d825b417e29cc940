"""Positional encoding from one function of position and column, without a buffer."""

import math

import torch
from torch import nn


def waves(positions, columns, d_model, base):
    """The encoding of every position in every column: a cosine is a sine a quarter turn ahead."""
    is_cosine = columns % 2
    rates = torch.exp(-(columns - is_cosine) / d_model * math.log(base))
    return torch.sin(positions.unsqueeze(1) * rates + is_cosine * math.pi / 2)


def sinusoidal(context_length, d_model, base=10000.0):
    return waves(torch.arange(context_length), torch.arange(d_model), d_model, base)


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, context_length, dropout=0.0):
        super().__init__()
        self.d_model = d_model
        self.context_length = context_length
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        n_tokens = x.size(1)
        assert n_tokens <= self.context_length, "too many tokens"
        positions = torch.arange(n_tokens, device=x.device)
        columns = torch.arange(self.d_model, device=x.device)
        encoding = waves(positions, columns, self.d_model, 10000.0)
        return self.dropout(x + encoding.to(x.dtype))


def permutation_gap(block, x, permutation):
    before = block(x.index_select(1, permutation))
    after = block(x).index_select(1, permutation)
    return torch.max(torch.abs(before - after)).item()
