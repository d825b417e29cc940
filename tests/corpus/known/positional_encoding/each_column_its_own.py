# mistake: exponent_of_each_column
import numpy as np
import torch
from torch import nn


def sinusoidal(context_length, d_model, base=10000.0):
    positions = np.arange(context_length)[:, None]
    angles = positions / np.power(base, np.arange(d_model)[None, :] / d_model)
    angles[:, 0::2] = np.sin(angles[:, 0::2])
    angles[:, 1::2] = np.cos(angles[:, 1::2])
    return torch.tensor(angles, dtype=torch.float32)


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, context_length, dropout=0.0):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("encoding", sinusoidal(context_length, d_model), persistent=False)

    def forward(self, x):
        if x.shape[1] > len(self.encoding):
            raise ValueError("too long")
        return self.dropout(x + self.encoding[: x.shape[1]])


def permutation_gap(block, x, permutation):
    return (block(x[:, permutation]) - block(x)[:, permutation]).abs().max()
