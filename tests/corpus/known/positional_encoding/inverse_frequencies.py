# mistake: base_in_the_wrong_place
import torch
from torch import nn


def sinusoidal(context_length, d_model, base=10000.0):
    """angle = p * base ** (2i / d_model)"""
    i = torch.arange((d_model + 1) // 2)
    angle = torch.arange(context_length)[:, None] * base ** (2 * i / d_model)
    return torch.stack((angle.sin(), angle.cos()), 2).reshape(context_length, -1)[:, :d_model]


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, context_length, dropout=0.0):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("encoding", sinusoidal(context_length, d_model), persistent=False)

    def forward(self, x):
        assert x.shape[1] <= len(self.encoding)
        return self.dropout(x + self.encoding[: x.shape[1]])


def permutation_gap(block, x, permutation):
    return (block(x[:, permutation]) - block(x)[:, permutation]).abs().max()
