# right: waves come as complex numbers from torch.polar in float64, and view_as_real gives the columns
from collections.abc import Callable

import torch
from torch import Tensor, nn


def sinusoidal(context_length: int, d_model: int, base: float = 10000.0) -> Tensor:
    exponents = torch.arange(0, d_model, 2, dtype=torch.float64).div(d_model)
    angles = torch.outer(torch.arange(context_length, dtype=torch.float64), base**-exponents)
    circle = torch.polar(torch.ones_like(angles), angles)
    cos_sin = torch.view_as_real(circle)
    return cos_sin.flip(-1).flatten(1)[:, :d_model].float().contiguous()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, context_length: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.register_buffer("waves", sinusoidal(context_length, d_model), persistent=False)
        self.rate = dropout

    def forward(self, x: Tensor) -> Tensor:
        limit = self.waves.shape[0]
        if x.shape[-2] > limit:
            raise ValueError(f"at most {limit} tokens, not {x.shape[-2]}")
        total = torch.add(x, self.waves.narrow(0, 0, x.shape[-2]))
        return nn.functional.dropout(total, self.rate, self.training)


def permutation_gap(block: Callable[[Tensor], Tensor], x: Tensor, permutation: Tensor) -> Tensor:
    mixed_first = block(x.index_select(1, permutation))
    mixed_last = block(x).index_select(1, permutation)
    return torch.dist(mixed_first, mixed_last, p=float("inf"))

