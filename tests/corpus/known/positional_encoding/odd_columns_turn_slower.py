# mistake: exponent_of_each_column

from collections.abc import Callable

import torch
from torch import Tensor, nn


def sinusoidal(context_length: int, d_model: int, base: float = 10000.0) -> Tensor:
    position = torch.arange(context_length, dtype=torch.float64)[:, None]
    column = torch.arange(d_model, dtype=torch.float64)
    angles = position / base ** (column / d_model)
    angles[:, 0::2] = torch.sin(angles[:, 0::2])
    angles[:, 1::2] = torch.cos(angles[:, 1::2])
    return angles.float()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, context_length: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.register_buffer("table", sinusoidal(context_length, d_model), persistent=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] > self.table.shape[0]:
            raise ValueError("too many tokens")
        return self.dropout(x + self.table[: x.shape[1]])


def permutation_gap(block: Callable[[Tensor], Tensor], x: Tensor, permutation: Tensor) -> Tensor:
    return (block(x[:, permutation]) - block(x)[:, permutation]).abs().max()
