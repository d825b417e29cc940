# mistake: longer_accepted
import torch
from torch import nn


def sinusoidal(context_length, d_model, base=10000.0):
    i = torch.arange(d_model).div(2, rounding_mode="floor")
    angle = torch.arange(context_length).unsqueeze(-1) * torch.pow(base, -2.0 * i / d_model)
    even = (torch.arange(d_model) % 2 == 0).float()
    return even * angle.sin() + (1 - even) * angle.cos()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, context_length, dropout=0.0):
        super().__init__()
        self.d_model = d_model
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.dropout(x + sinusoidal(x.shape[1], self.d_model).to(x))


def permutation_gap(block, x, permutation):
    return (block(x[:, permutation]) - block(x)[:, permutation]).abs().max()
