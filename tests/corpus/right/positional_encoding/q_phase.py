import math
from collections.abc import Callable

import torch
from torch import Tensor, nn


def sinusoidal(context_length: int, d_model: int, base: float = 10000.0) -> Tensor:
    """Only sines: a cosine is a sine that is a quarter turn ahead."""
    column = torch.arange(d_model, dtype=torch.float64)
    odd = column % 2
    turn = torch.exp((odd - column) / d_model * math.log(base))
    place = torch.arange(context_length, dtype=torch.float64).unsqueeze(1)
    return torch.sin(place * turn + odd * (math.pi / 2)).to(torch.float32)


class PositionalEncoding(nn.Module):
    """Keeps nothing: the encoding is made anew for each call."""

    def __init__(self, d_model: int, context_length: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.size = (context_length, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        n_tokens = x.size(-2)
        if n_tokens > self.size[0]:
            raise ValueError("x has more tokens than context_length")
        rows = sinusoidal(*self.size)[:n_tokens]
        return self.dropout(x + rows.to(x))


def permutation_gap(block: Callable[[Tensor], Tensor], x: Tensor, permutation: Tensor) -> float:
    permuted_first = block(x[:, permutation])
    permuted_last = block(x)[:, permutation]
    return (permuted_first - permuted_last).abs().max().item()
