# mistake: saved
import math
from collections.abc import Callable

import torch
from torch import Tensor, nn


def sinusoidal(context_length: int, d_model: int, base: float = 10000.0) -> Tensor:
    """Return the encoding of the positions 0, 1, ..., (context_length, d_model) in float32."""
    pe = torch.zeros(context_length, d_model)
    position = torch.arange(0, context_length, dtype=torch.float64).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, d_model, 2, dtype=torch.float64) * (-math.log(base) / d_model))
    pe[:, 0::2] = torch.sin(position * div_term).float()
    pe[:, 1::2] = torch.cos(position * div_term[: d_model // 2]).float()
    return pe


class PositionalEncoding(nn.Module):
    """Adds its sinusoidal encoding to each token."""

    def __init__(self, d_model: int, context_length: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        self.register_buffer("pe", sinusoidal(context_length, d_model))

    def forward(self, x: Tensor) -> Tensor:
        """Map x (batch, n_tokens, d_model) to the same shape and dtype."""
        if x.size(1) > self.pe.size(0):
            raise ValueError(f"{x.size(1)} tokens are too many")
        x = x + self.pe[: x.size(1)]
        return self.dropout(x)


def permutation_gap(block: Callable[[Tensor], Tensor], x: Tensor, permutation: Tensor) -> Tensor:
    """Return how far a block is from giving permuted tokens its permuted output."""
    out_of_permuted = block(x[:, permutation])
    permuted_out = block(x)[:, permutation]
    return (out_of_permuted - permuted_out).abs().max()
