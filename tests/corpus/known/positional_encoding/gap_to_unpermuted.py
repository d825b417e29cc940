# mistake: output_not_permuted
# permutation_gap compares the output for the permuted x with the output for x in its old order
import math

import torch
from torch import Tensor, nn


def sinusoidal(context_length: int, d_model: int, base: float = 10000.0) -> Tensor:
    freq = torch.exp(-math.log(base) * torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angles = torch.outer(torch.arange(context_length, dtype=torch.float64), freq)
    table = torch.empty(context_length, d_model, dtype=torch.float64)
    table[:, ::2] = angles.sin()
    table[:, 1::2] = angles.cos()[:, : d_model // 2]
    return table.to(torch.float32)


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, context_length: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.p = dropout
        self.register_buffer("table", sinusoidal(context_length, d_model), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] > self.table.shape[0]:
            raise ValueError("too long")
        return nn.functional.dropout(x + self.table[: x.shape[1]], self.p, self.training)


def permutation_gap(block, x: Tensor, permutation: Tensor) -> Tensor:
    before = block(x)
    after = block(x[:, permutation])
    return (after - before).abs().max()
