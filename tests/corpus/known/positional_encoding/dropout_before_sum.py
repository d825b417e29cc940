# mistake: dropout_before_the_sum

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn


def sinusoidal(context_length: int, d_model: int, base: float = 10000.0) -> Tensor:
    p = torch.arange(context_length, dtype=torch.float32).unsqueeze(1)
    rate = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(base) / d_model))
    encoding = torch.zeros(context_length, d_model)
    encoding[:, 0::2] = torch.sin(p * rate)
    encoding[:, 1::2] = torch.cos(p * rate[: d_model // 2])
    return encoding


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, context_length: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.context_length = context_length
        self.drop = nn.Dropout(p=dropout)
        self.register_buffer("pe", sinusoidal(context_length, d_model), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        n_tokens = x.size(1)
        if n_tokens > self.context_length:
            raise ValueError(f"{n_tokens} > {self.context_length}")
        return self.drop(x) + self.pe[:n_tokens]


def permutation_gap(block: Callable[[Tensor], Tensor], x: Tensor, permutation: Tensor) -> Tensor:
    permuted_first = block(x.index_select(1, permutation))
    permuted_last = block(x).index_select(1, permutation)
    return torch.max(torch.abs(permuted_first - permuted_last))
