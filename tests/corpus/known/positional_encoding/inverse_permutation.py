# mistake: inverse_permutation

from collections.abc import Callable

import torch
from torch import Tensor, nn


def sinusoidal(context_length: int, d_model: int, base: float = 10000.0) -> Tensor:
    pairs = (d_model + 1) // 2
    i = torch.arange(pairs, dtype=torch.float64)
    angle = torch.outer(torch.arange(context_length, dtype=torch.float64), base ** (-2 * i / d_model))
    both = torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1)
    return both[:, :d_model].float()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, context_length: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.register_buffer("encoding", sinusoidal(context_length, d_model), persistent=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[-2]
        if n > len(self.encoding):
            raise ValueError(f"at most {len(self.encoding)} tokens")
        return self.dropout(x + self.encoding[:n])


def permutation_gap(block: Callable[[Tensor], Tensor], x: Tensor, permutation: Tensor) -> Tensor:
    back = torch.argsort(permutation)
    return (block(x[:, permutation]) - block(x)[:, back]).abs().amax()
