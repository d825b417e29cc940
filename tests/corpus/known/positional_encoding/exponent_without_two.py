# mistake: exponent_halved
import torch
from torch import nn


def sinusoidal(context_length, d_model, base=10000.0):
    pe = torch.zeros(context_length, d_model)
    position = torch.arange(0, context_length, dtype=torch.float).unsqueeze(1)
    half = (d_model + 1) // 2
    div = base ** (torch.arange(0, half).float() / d_model)
    pe[:, 0::2] = torch.sin(position / div)
    pe[:, 1::2] = torch.cos(position / div[: d_model // 2])
    return pe


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, context_length, dropout=0.0):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        self.register_buffer("pe", sinusoidal(context_length, d_model).unsqueeze(0), persistent=False)

    def forward(self, x):
        if x.size(1) > self.pe.size(1):
            raise ValueError("too many tokens")
        return self.dropout(x + self.pe[:, : x.size(1)])


def permutation_gap(block, x, permutation):
    return (block(x[:, permutation]) - block(x)[:, permutation]).abs().max()
