# mistake: twice_the_column
# seen: SamLynnEvans/Transformer issue 25 (also Kyubyong/transformer issue 38). Mistake: the exponent uses twice the number of the column, so waves get long too fast and a sine and its cosine differ in length.
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def sinusoidal(context_length: int, d_model: int, base: float = 10000.0) -> Tensor:
    column = torch.arange(d_model)
    exponent = 2 * column.double() / d_model
    p = torch.arange(context_length).double()
    angle = p[:, None] / torch.pow(torch.tensor(base, dtype=torch.double), exponent)[None, :]
    return torch.where(column % 2 == 0, angle.sin(), angle.cos()).to(torch.float32)


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, context_length: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.rate = dropout
        self.register_buffer("table", sinusoidal(context_length, d_model), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        n_tokens = x.shape[1]
        if n_tokens > self.table.shape[0]:
            raise ValueError(f"no encoding for {n_tokens} tokens")
        return F.dropout(x + self.table[:n_tokens], self.rate, training=self.training)


def permutation_gap(block: Callable[[Tensor], Tensor], x: Tensor, permutation: Tensor) -> Tensor:
    permuted_first = block(x.index_select(1, permutation))
    permuted_last = block(x).index_select(1, permutation)
    return torch.amax(torch.abs(permuted_first - permuted_last))
