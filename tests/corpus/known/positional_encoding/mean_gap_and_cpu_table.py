# mistake: gap_is_a_mean + encoding_left_behind
import math

import torch
from torch import nn


def sinusoidal(context_length, d_model, base=10000.0):
    pe = torch.zeros(context_length, d_model)
    w = torch.exp(torch.arange(0, d_model, 2) / d_model * -math.log(base))
    angle = torch.arange(context_length).outer(w) if False else torch.arange(context_length)[:, None] * w
    pe[:, 0::2] = angle.sin()
    pe[:, 1::2] = angle.cos()[:, : pe[:, 1::2].shape[1]]
    return pe


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, context_length, dropout=0.0):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.pe = sinusoidal(context_length, d_model)

    def forward(self, x):
        n = x.shape[1]
        if n > self.pe.shape[0]:
            raise ValueError(f"{n} > {self.pe.shape[0]}")
        return self.dropout(x + self.pe[:n].to(x.dtype))


def permutation_gap(block, x, permutation):
    return torch.mean(torch.abs(block(x[:, permutation]) - block(x)[:, permutation]))
