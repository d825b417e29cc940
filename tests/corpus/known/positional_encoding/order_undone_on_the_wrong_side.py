# mistake: inverse_permutation
from collections.abc import Callable

import torch
from torch import Tensor, nn


def sinusoidal(context_length: int, d_model: int, base: float = 10000.0) -> Tensor:
    """Return the encoding of the positions 0, 1, ..., (context_length, d_model) in float32."""
    positions = torch.arange(context_length, dtype=torch.float64)
    columns = torch.arange(0, d_model, 2, dtype=torch.float64)
    angles = positions[:, None] / base ** (columns / d_model)
    encoding = torch.empty(context_length, d_model, dtype=torch.float32)
    encoding[:, 0::2] = torch.sin(angles)
    encoding[:, 1::2] = torch.cos(angles)[:, : d_model // 2]
    return encoding


class PositionalEncoding(nn.Module):
    """Adds its sinusoidal encoding to each token."""

    def __init__(self, d_model: int, context_length: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.context_length = context_length
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("encoding", sinusoidal(context_length, d_model), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Map x (batch, n_tokens, d_model) to the same shape and dtype."""
        n_tokens = x.shape[1]
        if n_tokens > self.context_length:
            raise ValueError(f"{n_tokens} tokens, but at most {self.context_length} fit")
        return self.dropout(x + self.encoding[:n_tokens])


def permutation_gap(block: Callable[[Tensor], Tensor], x: Tensor, permutation: Tensor) -> Tensor:
    """Return how far a block is from giving permuted tokens its permuted output."""
    return (block(x[:, permutation]) - block(x)[:, permutation.argsort()]).abs().max()
