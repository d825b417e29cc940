# note: the waves are powers of complex numbers seen through view_as_real, and the module computes its table in forward and keeps nothing
import math
from collections.abc import Callable

import torch
from torch import Tensor, nn


def sinusoidal(context_length: int, d_model: int, base: float = 10000.0) -> Tensor:
    pairs = (d_model + 1) // 2
    speed = torch.exp(torch.arange(pairs, dtype=torch.float64) * (-2 * math.log(base) / d_model))
    angle = torch.outer(torch.arange(context_length, dtype=torch.float64), speed)
    circle = torch.polar(torch.ones_like(angle), angle)  # cos + i sin
    both = torch.view_as_real(circle).flip(-1).reshape(context_length, 2 * pairs)
    return both[:, :d_model].to(torch.float32).contiguous()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, context_length: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.d_model, self.context_length, self.rate = d_model, context_length, dropout

    def forward(self, x: Tensor) -> Tensor:
        n = x.size(1)
        if n > self.context_length:
            raise ValueError(f"{n} tokens, but at most {self.context_length} are possible")
        table = sinusoidal(n, self.d_model).to(device=x.device, dtype=x.dtype)
        return nn.functional.dropout(torch.add(x, table), self.rate, self.training)


def permutation_gap(block: Callable[[Tensor], Tensor], x: Tensor, permutation: Tensor) -> Tensor:
    moved = torch.index_select(x, 1, permutation)
    return torch.dist(
        block(moved).flatten(), torch.index_select(block(x), 1, permutation).flatten(), p=math.inf
    )
