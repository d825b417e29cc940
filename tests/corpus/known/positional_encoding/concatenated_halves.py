# mistake: halves
import math

import torch
import torch.nn as nn


def sinusoidal(context_length: int, d_model: int, base: float = 10000.0):
    n_sin = math.ceil(d_model / 2)
    freqs = torch.exp(-math.log(base) * 2 * torch.arange(n_sin) / d_model)
    angles = torch.outer(torch.arange(context_length).float(), freqs)
    return torch.cat([angles.sin(), angles.cos()], dim=1)[:, :d_model]


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, context_length: int, dropout: float = 0.0):
        super().__init__()
        table = sinusoidal(context_length, d_model)
        self.register_buffer("table", table, persistent=False)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        n = x.shape[1]
        if n > len(self.table):
            raise ValueError(f"{n} tokens, but the context has {len(self.table)}")
        return self.drop(x + self.table[:n])


def permutation_gap(block, x, permutation):
    with torch.no_grad():
        first = block(x[:, permutation, :])
        second = block(x)[:, permutation, :]
    return float((first - second).abs().max())
