# mistake: exponents_rounded_down
from collections.abc import Callable

import torch
from torch import Tensor, nn


def sinusoidal(context_length: int, d_model: int, base: float = 10000.0) -> Tensor:
    """Return the encoding of the positions 0, 1, ..., (context_length, d_model) in float32."""
    positions = torch.arange(context_length).unsqueeze(1)
    column = torch.arange(d_model)
    angles = positions / base ** (2 * column / d_model // 1)
    encoding = torch.empty(context_length, d_model)
    encoding[:, 0::2] = angles[:, 0::2].sin()
    encoding[:, 1::2] = angles[:, 1::2].cos()
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
