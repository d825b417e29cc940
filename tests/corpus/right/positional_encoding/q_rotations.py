from collections.abc import Callable

import torch
from torch import Tensor, nn


def sinusoidal(context_length: int, d_model: int, base: float = 10000.0) -> Tensor:
    """Each step turns every pair's point on its circle a bit further: a product of rotations."""
    exponent = torch.arange(0, d_model, 2, dtype=torch.float64) / d_model
    step = torch.exp(1j / torch.pow(base, exponent))
    points = step.repeat(context_length, 1)
    points[0] = 1
    points = points.cumprod(dim=0)
    table = torch.empty(context_length, d_model)
    table[:, 0::2] = points.imag
    table[:, 1::2] = points.real[:, : d_model // 2]
    return table


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, context_length: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.add_on = nn.Buffer(sinusoidal(context_length, d_model)[None], persistent=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] > self.add_on.shape[1]:
            raise ValueError("too many tokens")
        encoding = self.add_on.narrow(1, 0, x.shape[1])
        return self.dropout(encoding.expand_as(x) + x)


def permutation_gap(block: Callable[[Tensor], Tensor], x: Tensor, permutation: Tensor) -> Tensor:
    index = permutation.view(1, -1, 1).expand_as(x)
    y = block(torch.gather(x, 1, index))
    z = torch.gather(block(x), 1, index)
    return torch.maximum(y - z, z - y).amax()
