# style: unusual
import math
from collections.abc import Callable

import torch
from torch import Tensor, nn


def sinusoidal(context_length: int, d_model: int, base: float = 10000.0) -> Tensor:
    """cos(a) = sin(a + pi/2), so one sine does it for all columns"""
    col = torch.arange(d_model, dtype=torch.float64)
    pair = torch.div(col, 2, rounding_mode="floor")
    speed = torch.exp(-math.log(base) * 2 * pair / d_model)
    phase = (col % 2) * (math.pi / 2)
    angle = torch.outer(torch.arange(context_length, dtype=torch.float64), speed)
    return torch.sin(angle + phase).float()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, context_length: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("pe", sinusoidal(context_length, d_model), persistent=False)

    @property
    def context_length(self) -> int:
        return len(self.pe)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.context_length:
            raise ValueError(f"{n} tokens, but there are {self.context_length} positions")
        return self.dropout(x + self.pe[None, :n])


def permutation_gap(block: Callable[[Tensor], Tensor], x: Tensor, permutation: Tensor) -> Tensor:
    first_permuted = block(torch.index_select(x, 1, permutation))
    last_permuted = torch.index_select(block(x), 1, permutation)
    return torch.dist(first_permuted, last_permuted, p=math.inf)
