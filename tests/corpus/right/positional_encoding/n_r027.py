# style: unusual
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def sinusoidal(context_length: int, d_model: int, base: float = 10000.0) -> Tensor:
    """Return the encoding of the positions 0, 1, ..., (context_length, d_model) in float32."""
    n_pairs = (d_model + 1) // 2
    p = torch.arange(context_length, dtype=torch.float64).reshape(-1, 1)
    i = torch.arange(n_pairs, dtype=torch.float64).reshape(1, -1)
    angle = p / base ** (2 * i / d_model)
    both = torch.stack([angle.sin(), angle.cos()], dim=2)  # (context_length, n_pairs, 2)
    table = both.reshape(context_length, 2 * n_pairs)
    return table[:, :d_model].to(torch.float32)


class PositionalEncoding(nn.Module):
    """Adds its sinusoidal encoding to each token."""

    def __init__(self, d_model: int, context_length: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.rate = dropout
        self.context_length = context_length
        self.register_buffer("encoding", sinusoidal(context_length, d_model), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Map x (batch, n_tokens, d_model) to the same shape and dtype."""
        n_tokens = x.size(-2)
        if n_tokens > self.context_length:
            raise ValueError("too many tokens for this encoding")
        rows = self.encoding.narrow(0, 0, n_tokens).to(x.dtype)
        return F.dropout(x + rows, p=self.rate, training=self.training)


@torch.no_grad()
def permutation_gap(block: Callable[[Tensor], Tensor], x: Tensor, permutation: Tensor) -> Tensor:
    """Return how far a block is from giving permuted tokens its permuted output."""
    gap = block(x[:, permutation]) - block(x)[:, permutation]
    return gap.abs().max()
