# mistake: positions_from_one

from collections.abc import Callable

import torch
from torch import Tensor, nn


def sinusoidal(context_length: int, d_model: int, base: float = 10000.0) -> Tensor:
    positions = torch.arange(1, context_length + 1, dtype=torch.float64)
    exponents = torch.arange(0, d_model, 2, dtype=torch.float64) / d_model
    angles = torch.einsum("p,i->pi", positions, base**-exponents)
    table = torch.empty(context_length, d_model)
    table[:, ::2] = angles.sin()
    table[:, 1::2] = angles[:, : d_model // 2].cos()
    return table


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, context_length: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.context_length = context_length
        self.register_buffer("waves", sinusoidal(context_length, d_model)[None], persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] > self.context_length:
            raise ValueError(f"{x.shape[1]} tokens do not fit into {self.context_length}")
        return self.dropout(x + self.waves[:, : x.shape[1]])


def permutation_gap(block: Callable[[Tensor], Tensor], x: Tensor, permutation: Tensor) -> Tensor:
    gap = block(x[:, permutation]) - block(x)[:, permutation]
    return gap.abs().max().item()
