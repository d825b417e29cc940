# style: the table is a plain attribute and follows by .to(x) in forward
import torch
from torch import nn


def sinusoidal(context_length, d_model, base=10000.0):
    p = torch.arange(context_length, dtype=torch.float64).unsqueeze(1)
    column = torch.arange(d_model)
    angle = p / base ** (2 * (column // 2).double() / d_model)
    # cos(a) = sin(a + pi / 2)
    return torch.sin(angle + torch.pi / 2 * (column % 2)).float()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, context_length, dropout=0.0):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.table = sinusoidal(context_length, d_model)

    def forward(self, x):
        n = x.shape[1]
        if n > len(self.table):
            raise ValueError(f"more than {len(self.table)} tokens")
        return self.dropout(x + self.table[:n].to(x))


def permutation_gap(block, x, permutation):
    return (block(x[:, permutation]) - block(x)[:, permutation]).abs().amax()
