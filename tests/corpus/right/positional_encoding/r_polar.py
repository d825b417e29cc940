from collections.abc import Callable

import torch
from torch import Tensor, nn


def sinusoidal(context_length: int, d_model: int, base: float = 10000.0) -> Tensor:
    # every pair is a point on the unit circle: imaginary part = sine, real part = cosine
    pairs = (d_model + 1) // 2
    i = torch.arange(pairs, dtype=torch.float64)
    speed = torch.pow(torch.tensor(base, dtype=torch.float64), -2 * i / d_model)
    angle = torch.outer(torch.arange(context_length, dtype=torch.float64), speed)
    points = torch.polar(torch.ones_like(angle), angle)
    waves = torch.view_as_real(points).flip(-1).flatten(1)
    return waves[:, :d_model].float().contiguous()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, context_length: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.register_buffer("table", sinusoidal(context_length, d_model), persistent=False)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        n = x.size(1)
        if n > self.table.size(0):
            raise ValueError(f"{n} tokens do not fit into {self.table.size(0)} positions")
        return self.drop(x + self.table.narrow(0, 0, n).to(x.dtype))


def permutation_gap(block: Callable[[Tensor], Tensor], x: Tensor, permutation: Tensor) -> Tensor:
    permuted_first = block(x.index_select(1, permutation))
    permuted_last = block(x).index_select(1, permutation)
    return (permuted_first - permuted_last).abs().amax()
