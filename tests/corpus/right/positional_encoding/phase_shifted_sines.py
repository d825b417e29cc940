# note: a cosine is a sine with a quarter turn, so all columns come from one sine; the table is a non-persistent buffer of three axes, and the module is an nn.Sequential of dropout
import math
from collections.abc import Callable

import torch
from torch import Tensor, nn


def sinusoidal(context_length: int, d_model: int, base: float = 10000.0) -> Tensor:
    col = torch.arange(d_model, dtype=torch.double)
    even = col - col % 2
    phase = (col % 2) * (math.pi / 2)
    pos = torch.arange(context_length, dtype=torch.double)
    return torch.sin(pos[:, None] / base ** (even / d_model) + phase).float()


class PositionalEncoding(nn.Sequential):
    def __init__(self, d_model: int, context_length: int, dropout: float = 0.0) -> None:
        super().__init__(nn.Dropout(dropout))
        self.register_buffer("table", sinusoidal(context_length, d_model)[None], persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] > self.table.shape[1]:
            raise ValueError("more tokens than positions")
        return super().forward(x + self.table[:, : x.shape[1]])


def permutation_gap(block: Callable[[Tensor], Tensor], x: Tensor, permutation: Tensor) -> float:
    with torch.no_grad():
        a = block(x[:, permutation])
        b = block(x)[:, permutation]
        return max((a - b).max().item(), (b - a).max().item())
