# mistake: dropout_before_the_sum
from typing import Callable

import torch
from torch import Tensor, nn


def sinusoidal(context_length: int, d_model: int, base: float = 10000.0) -> Tensor:
    """Return the encoding of the positions 0, 1, ..., (context_length, d_model) in float32."""
    positions = torch.arange(context_length, dtype=torch.float64).unsqueeze(1)
    even = torch.arange(0, d_model, 2, dtype=torch.float64)
    angles = positions / base ** (even / d_model)
    encoding = torch.zeros(context_length, d_model)
    encoding[:, 0::2] = torch.sin(angles)
    encoding[:, 1::2] = torch.cos(angles[:, : d_model // 2])
    return encoding


class PositionalEncoding(nn.Module):
    """Adds its sinusoidal encoding to each token."""

    def __init__(self, d_model: int, context_length: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.register_buffer("encoding", sinusoidal(context_length, d_model), persistent=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Map x (batch, n_tokens, d_model) to the same shape and dtype."""
        n_tokens = x.shape[1]
        if n_tokens > self.encoding.shape[0]:
            raise ValueError(f"{n_tokens} tokens are too many")
        return self.dropout(x) + self.encoding[:n_tokens]


def permutation_gap(block: Callable[[Tensor], Tensor], x: Tensor, permutation: Tensor) -> Tensor:
    """Return how far a block is from giving permuted tokens its permuted output."""
    moved_before = block(x[:, permutation])
    moved_after = block(x)[:, permutation]
    return (moved_before - moved_after).abs().max()
