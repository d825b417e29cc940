# mistake: output_not_permuted
from collections.abc import Callable

import torch
from torch import Tensor, nn


def sinusoidal(context_length: int, d_model: int, base: float = 10000.0) -> Tensor:
    """Return the table of the positions 0, 1, ..., (context_length, d_model) in float32."""
    positions = torch.arange(context_length, dtype=torch.float64).unsqueeze(1)
    columns = torch.arange(0, d_model, 2, dtype=torch.float64)
    angles = positions / torch.pow(base, columns / d_model)
    table = torch.zeros(context_length, d_model, dtype=torch.float64)
    table[:, 0::2] = torch.sin(angles)
    table[:, 1::2] = torch.cos(angles[:, : d_model // 2])
    return table.float()


class PositionalEncoding(nn.Module):
    """Adds its sinusoidal table to each token."""

    def __init__(self, d_model: int, context_length: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("table", sinusoidal(context_length, d_model), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Map x (batch, n_tokens, d_model) to the same shape and dtype."""
        n_tokens = x.shape[1]
        if n_tokens > self.table.shape[0]:
            raise ValueError(f"at most {self.table.shape[0]} tokens, got {n_tokens}")
        return self.dropout(x + self.table[:n_tokens])


def permutation_gap(block: Callable[[Tensor], Tensor], x: Tensor, permutation: Tensor) -> Tensor:
    """Return how far a block is from giving permuted tokens its permuted output."""
    gap = block(x[:, permutation]) - block(x)
    return gap.abs().max()
