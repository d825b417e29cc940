# promise: An odd d_model gets the encoding of d_model + 1 columns, cut, so its waves have the wrong length.
import torch
from torch import nn


def sinusoidal(context_length, d_model, base=10000.0):
    width = d_model + d_model % 2
    i = torch.arange(width // 2, dtype=torch.float64)
    angle = torch.arange(context_length, dtype=torch.float64)[:, None] / base ** (2 * i / width)
    return torch.stack((angle.sin(), angle.cos()), -1).reshape(context_length, width)[:, :d_model].float()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, context_length, dropout=0.0):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("encoding", sinusoidal(context_length, d_model), persistent=False)

    def forward(self, x):
        if x.shape[1] > self.encoding.shape[0]:
            raise ValueError("more tokens than context_length")
        return self.dropout(x + self.encoding[: x.shape[1]])


def permutation_gap(block, x, permutation):
    return (block(x[:, permutation]) - block(x)[:, permutation]).abs().max()
