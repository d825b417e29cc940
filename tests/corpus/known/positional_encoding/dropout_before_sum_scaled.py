# mistake: dropout_before_the_sum + scaled_tokens
import math

import torch
from torch import nn


def sinusoidal(context_length, d_model, base=10000.0):
    pe = torch.zeros(context_length, d_model)
    w = torch.exp(torch.arange(0, d_model, 2) / d_model * -math.log(base))
    angle = torch.arange(context_length)[:, None] * w
    pe[:, 0::2] = angle.sin()
    pe[:, 1::2] = angle.cos()[:, : d_model // 2]
    return pe


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, context_length, dropout=0.0):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.d_model = d_model
        self.register_buffer("pe", sinusoidal(context_length, d_model), persistent=False)

    def forward(self, x):
        if x.shape[1] > self.pe.shape[0]:
            raise ValueError("too many tokens")
        return self.dropout(x * math.sqrt(self.d_model)) + self.pe[: x.shape[1]]


def permutation_gap(block, x, permutation):
    return (block(x[:, permutation]) - block(x)[:, permutation]).abs().max()
