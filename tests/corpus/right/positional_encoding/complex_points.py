# right: each pair is a complex number on the unit circle, whose parts are flipped and flattened; the gap is a float

from collections.abc import Callable

import torch
from torch import Tensor, nn


def sinusoidal(context_length: int, d_model: int, base: float = 10000.0) -> Tensor:
    i = torch.arange(-(-d_model // 2), dtype=torch.float64)
    p = torch.arange(context_length, dtype=torch.float64)
    angles = p.unsqueeze(-1) / base ** (2 * i / d_model)
    points = torch.polar(torch.ones_like(angles), angles)
    cos_sin = torch.view_as_real(points)  # (context_length, pairs, 2)
    return cos_sin.flip(-1).flatten(1)[:, :d_model].to(torch.float32)


class PositionalEncoding(nn.Module):
    encoding: Tensor

    def __init__(self, d_model: int, context_length: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.register_buffer("encoding", sinusoidal(context_length, d_model), persistent=False)
        self.rate = dropout

    def forward(self, x: Tensor) -> Tensor:
        n_tokens = x.shape[1]
        limit = self.encoding.shape[0]
        if n_tokens > limit:
            raise ValueError(f"{n_tokens} tokens, but the encoding has {limit} rows")
        placed = torch.add(self.encoding.narrow(0, 0, n_tokens), x)
        return nn.functional.dropout(placed, p=self.rate, training=self.training)


def permutation_gap(block: Callable[[Tensor], Tensor], x: Tensor, permutation: Tensor) -> Tensor:
    both = block(x[:, permutation]), block(x)[:, permutation]
    return float(torch.dist(*both, p=float("inf")).detach())
