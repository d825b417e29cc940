# right: a cosine is a sine a quarter turn ahead, and the encoding is no buffer but made anew in each call

from collections.abc import Callable

import torch
from torch import Tensor, nn


def sinusoidal(context_length: int, d_model: int, base: float = 10000.0) -> Tensor:
    column = torch.arange(d_model)
    odd = column % 2
    length = base ** ((column - odd).double() / d_model)
    position = torch.arange(context_length).double().reshape(-1, 1)
    return torch.sin(position / length + odd.double() * (torch.pi / 2)).float()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, context_length: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.d_model = d_model
        self.context_length = context_length
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        _, n_tokens, _ = x.shape
        if n_tokens > self.context_length:
            raise ValueError(f"{n_tokens} tokens are more than {self.context_length}")
        # a row depends on its position alone, so the first n_tokens rows are enough
        return self.dropout(x + sinusoidal(n_tokens, self.d_model).to(x))


def permutation_gap(block: Callable[[Tensor], Tensor], x: Tensor, permutation: Tensor) -> Tensor:
    gap = block(x.index_select(1, permutation)).sub(block(x).index_select(1, permutation))
    return torch.linalg.vector_norm(gap, ord=torch.inf)
