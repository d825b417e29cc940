# mistake: even_widths_only
import math

import torch
from torch import nn


def sinusoidal(context_length, d_model, base=10000.0):
    pe = torch.zeros(context_length, d_model)
    position = torch.arange(context_length).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(base) / d_model))
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)
    return pe


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, context_length, dropout=0.0):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("pe", sinusoidal(context_length, d_model), persistent=False)

    def forward(self, x):
        if x.size(1) > self.pe.size(0):
            raise ValueError("too many tokens")
        return self.dropout(x + self.pe[: x.size(1)])


def permutation_gap(block, x, permutation):
    return (block(x[:, permutation]) - block(x)[:, permutation]).abs().max()
