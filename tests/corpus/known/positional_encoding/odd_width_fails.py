# mistake: even_widths_only
# an odd d_model fails, as the cosines have one column less than the sines
import math

import torch
from torch import Tensor, nn


def sinusoidal(context_length: int, d_model: int, base: float = 10000.0) -> Tensor:
    position = torch.arange(context_length).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(base) / d_model))
    pe = torch.zeros(context_length, d_model)
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)
    return pe


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, context_length: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        self.register_buffer("pe", sinusoidal(context_length, d_model).unsqueeze(0), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        if x.size(1) > self.pe.size(1):
            raise ValueError("sequence is too long")
        x = x + self.pe[:, : x.size(1)]
        return self.dropout(x)


def permutation_gap(block, x: Tensor, permutation: Tensor) -> Tensor:
    out = block(x)[:, permutation]
    return (out - block(x[:, permutation])).abs().max()
