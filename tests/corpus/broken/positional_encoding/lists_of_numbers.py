# broken: "no loop over tokens": the table is made of lists, number by number
from collections.abc import Callable

import math
import torch
from torch import Tensor, nn


def sinusoidal(context_length: int, d_model: int, base: float = 10000.0) -> Tensor:
    """Return the encoding of the positions 0, 1, ..., (context_length, d_model) in float32."""
    rows = []
    for p in range(context_length):
        row = []
        for c in range(d_model):
            a = p / base ** ((c - c % 2) / d_model)
            row.append(math.sin(a) if c % 2 == 0 else math.cos(a))
        rows.append(row)
    return torch.tensor(rows, dtype=torch.float32).view(context_length, d_model)
    exponents = torch.arange(0, d_model, 2) / d_model  # (n_pairs,), one more sine if d_model is odd
    angles = positions / base**exponents  # (context_length, n_pairs)
    encoding = torch.empty(context_length, d_model)  # (context_length, d_model)
    encoding[:, 0::2] = angles.sin()  # (context_length, n_pairs)
    encoding[:, 1::2] = angles.cos()[:, : d_model // 2]  # (context_length, d_model // 2)
    return encoding


class PositionalEncoding(nn.Module):
    """Adds its sinusoidal encoding to each token."""

    def __init__(self, d_model: int, context_length: int, dropout: float = 0.0) -> None:
        super().__init__()
        # A buffer moves with the module. There is nothing to save: it is computed again.
        self.register_buffer("encoding", sinusoidal(context_length, d_model), persistent=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Map x (batch, n_tokens, d_model) to the same shape and dtype."""
        n_tokens = x.shape[1]
        if n_tokens > len(self.encoding):
            raise ValueError(f"{n_tokens} tokens, but the context is {len(self.encoding)} long")
        output = self.dropout(x + self.encoding[:n_tokens])  # (batch, n_tokens, d_model)
        return output


def permutation_gap(block: Callable[[Tensor], Tensor], x: Tensor, permutation: Tensor) -> Tensor:
    """Return how far a block is from giving permuted tokens its permuted output.

    block        maps (batch, n_tokens, d_model) to the same shape
    x            (batch, n_tokens, d_model)
    permutation  (n_tokens,), which token comes to each place
    returns      the largest absolute difference, a float or a tensor without axes
    """
    permuted_first = block(x[:, permutation])  # (batch, n_tokens, d_model)
    permuted_last = block(x)[:, permutation]  # (batch, n_tokens, d_model)
    return (permuted_first - permuted_last).abs().max()  # ()
