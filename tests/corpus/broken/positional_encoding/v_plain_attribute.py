# promise: the table is a plain attribute and only its dtype follows x
import torch
from torch import nn


def sinusoidal(context_length, d_model, base=10000.0):
    position = torch.arange(context_length, dtype=torch.float64).unsqueeze(1)
    even = torch.arange(0, d_model, 2, dtype=torch.float64)
    angles = position / base ** (even / d_model)
    table = torch.zeros(context_length, d_model, dtype=torch.float64)
    table[:, 0::2] = torch.sin(angles)
    table[:, 1::2] = torch.cos(angles[:, : d_model // 2])
    return table.float()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, context_length, dropout=0.0):
        super().__init__()
        self.context_length = context_length
        self.dropout = nn.Dropout(dropout)
        self.pe = sinusoidal(context_length, d_model)

    def forward(self, x):
        n = x.shape[1]
        if n > self.context_length:
            raise ValueError("too many tokens")
        return self.dropout(x + self.pe[:n].to(x.dtype))


def permutation_gap(block, x, permutation):
    return (block(x[:, permutation]) - block(x)[:, permutation]).abs().max()
