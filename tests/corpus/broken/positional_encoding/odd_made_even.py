# broken: angle(p, i) = p / base^(2i / d_model), and d_model may be odd: an odd d_model is made even before the angles are computed, so their exponents are 2i / (d_model + 1)
from collections.abc import Callable

import torch
from torch import Tensor, nn


def sinusoidal(context_length: int, d_model: int, base: float = 10000.0) -> Tensor:
    """Return the encoding of the positions 0, 1, ..., (context_length, d_model) in float32."""
    positions = torch.arange(context_length, dtype=torch.float64).unsqueeze(1)
    columns = torch.arange(d_model + d_model % 2)
    angles = positions / base ** (2 * (columns // 2).to(torch.float64) / len(columns))
    waves = torch.where(columns % 2 == 0, angles.sin(), angles.cos())
    return waves[:, :d_model].to(torch.float32)


class PositionalEncoding(nn.Module):
    """Adds its sinusoidal encoding to each token."""

    def __init__(self, d_model: int, context_length: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.context_length = context_length
        self.register_buffer("encoding", sinusoidal(context_length, d_model), persistent=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Map x (batch, n_tokens, d_model) to the same shape and dtype."""
        n_tokens = x.shape[1]
        if n_tokens > self.context_length:
            raise ValueError(f"{n_tokens} tokens are more than {self.context_length}")
        total = x + self.encoding[:n_tokens]
        return self.dropout(total)


def permutation_gap(block: Callable[[Tensor], Tensor], x: Tensor, permutation: Tensor) -> Tensor:
    """Return how far a block is from giving permuted tokens its permuted output."""
    difference = block(x[:, permutation]) - block(x)[:, permutation]
    return difference.abs().max()
