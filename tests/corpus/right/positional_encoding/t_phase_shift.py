# right: cosines as sines with a shifted phase, one sine for all columns; the table is made anew in each forward, no buffer
import math
from typing import Callable

import torch
from torch import Tensor, nn


def sinusoidal(context_length: int, d_model: int, base: float = 10000.0) -> Tensor:
    column = torch.arange(d_model)
    pair = (column // 2).double()
    speed = torch.exp(-math.log(base) * 2 * pair / d_model)
    angle = torch.outer(torch.arange(context_length).double(), speed)
    return torch.sin(angle + (column % 2) * (math.pi / 2)).float()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, context_length: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.sizes = (context_length, d_model)
        self.p = dropout

    def forward(self, x: Tensor) -> Tensor:
        if x.size(-2) > self.sizes[0]:
            raise ValueError(f"at most {self.sizes[0]} tokens")
        rows = sinusoidal(*self.sizes)[: x.size(-2)].to(device=x.device, dtype=x.dtype)
        return nn.functional.dropout(x + rows, self.p, self.training)


def permutation_gap(block: Callable[[Tensor], Tensor], x: Tensor, permutation: Tensor) -> float:
    first = block(torch.index_select(x, 1, permutation))
    second = torch.index_select(block(x), 1, permutation)
    return torch.sub(first, second).abs().amax().item()
