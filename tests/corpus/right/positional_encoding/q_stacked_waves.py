from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def sinusoidal(context_length: int, d_model: int, base: float = 10000.0) -> Tensor:
    pairs = (d_model + 1) // 2
    speeds = base ** (-2 * torch.arange(pairs, dtype=torch.float64) / d_model)
    angles = torch.outer(torch.arange(context_length, dtype=torch.float64), speeds)
    waves = torch.polar(torch.ones_like(angles), angles)
    both = torch.stack((waves.imag, waves.real), dim=-1).flatten(1)
    return both[:, :d_model].float()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, context_length: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.rate = dropout
        self.register_buffer("table", sinusoidal(context_length, d_model), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        room, n = self.table.shape[0], x.shape[1]
        if n > room:
            raise ValueError(f"{n} tokens, room for {room}")
        return F.dropout(torch.add(x, self.table[:n]), self.rate, self.training)


def permutation_gap(block: Callable[[Tensor], Tensor], x: Tensor, permutation: Tensor) -> Tensor:
    gap = block(x.index_select(1, permutation)) - block(x).index_select(1, permutation)
    return torch.linalg.vector_norm(gap, ord=float("inf"))
