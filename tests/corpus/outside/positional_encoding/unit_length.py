# mistake: the encoding is normalised to unit length before it is added
import torch
from torch import nn


def sinusoidal(context_length, d_model, base=10000.0):
    j = torch.arange(d_model)
    angle = torch.arange(context_length).view(-1, 1) / base ** (2 * (j // 2) / d_model)
    return torch.where(j % 2 == 0, angle.sin(), angle.cos())


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, context_length, dropout=0.0):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.register_buffer("p", nn.functional.normalize(sinusoidal(context_length, d_model), dim=-1), persistent=False)

    def forward(self, x):
        if x.shape[1] > len(self.p):
            raise ValueError("too long")
        return self.drop(x + self.p[: x.shape[1]])


def permutation_gap(block, x, permutation):
    return (block(x[:, permutation]) - block(x)[:, permutation]).abs().max()
