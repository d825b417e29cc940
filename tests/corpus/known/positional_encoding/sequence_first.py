# mistake: batch_axis
import math

import torch
from torch import nn


def sinusoidal(context_length, d_model, base=10000.0):
    position = torch.arange(context_length).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(base) / d_model))
    pe = torch.zeros(context_length, d_model)
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)[:, : d_model // 2]
    return pe


class PositionalEncoding(nn.Module):
    # as in the tutorial: x is (seq, batch, d_model)
    def __init__(self, d_model, context_length, dropout=0.0):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        pe = sinusoidal(context_length, d_model).unsqueeze(1)
        self.register_buffer("pe", pe, persistent=False)
        self.context_length = context_length

    def forward(self, x):
        if x.size(1) > self.context_length:
            raise ValueError("too many tokens")
        return self.dropout(x + self.pe[: x.size(0)])


def permutation_gap(block, x, permutation):
    return (block(x[:, permutation]) - block(x)[:, permutation]).abs().max()
