# mistake: saved
import math

import torch
from torch import Tensor, nn


def sinusoidal(context_length, d_model, base=10000.0):
    position = torch.arange(context_length).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(base) / d_model))
    pe = torch.zeros(context_length, d_model)
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)[:, : d_model // 2]
    return pe


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, context_length: int, dropout: float = 0.0):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        self.register_buffer("pe", sinusoidal(context_length, d_model))

    def forward(self, x: Tensor) -> Tensor:
        if x.size(1) > self.pe.size(0):
            raise ValueError("too many tokens")
        x = x + self.pe[: x.size(1)]
        return self.dropout(x)


def permutation_gap(block, x, permutation):
    return (block(x[:, permutation]) - block(x)[:, permutation]).abs().max()
