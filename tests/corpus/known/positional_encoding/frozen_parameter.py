# mistake: trained
import torch
from torch import nn


def sinusoidal(context_length, d_model, base=10000.0):
    j = torch.arange(d_model)
    angle = torch.arange(context_length).view(-1, 1) / base ** (2 * (j // 2) / d_model)
    pe = angle.sin()
    pe[:, 1::2] = angle[:, 1::2].cos()
    return pe


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, context_length, dropout=0.0):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.pe = nn.Parameter(sinusoidal(context_length, d_model), requires_grad=False)

    def forward(self, x):
        if x.shape[1] > self.pe.shape[0]:
            raise ValueError("more tokens than context_length")
        return self.dropout(x + self.pe[: x.shape[1]])


def permutation_gap(block, x, permutation):
    a = block(x[:, permutation])
    b = block(x)[:, permutation]
    return torch.dist(a, b, p=float("inf"))
