# mistake: batch_axis
# seen: songyangco/GETNext issue 2 (also influenza_transformer issue 9). Mistake: the rows of the encoding are added along the batch axis, so all tokens of a sequence get the same one.
from collections.abc import Callable

import torch
from torch import Tensor, nn


def sinusoidal(context_length: int, d_model: int, base: float = 10000.0) -> Tensor:
    pe = torch.zeros(context_length, d_model, dtype=torch.float64)
    position = torch.arange(context_length, dtype=torch.float64).unsqueeze(1)
    even = torch.arange(0, d_model, 2, dtype=torch.float64)
    angle = position / base ** (even / d_model)
    pe[:, 0::2] = torch.sin(angle)
    pe[:, 1::2] = torch.cos(angle)[:, : d_model // 2]
    return pe.float()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, context_length: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        pe = sinusoidal(context_length, d_model).unsqueeze(1)
        self.register_buffer("pe", pe, persistent=False)
        self.context_length = context_length

    def forward(self, x: Tensor) -> Tensor:
        if x.size(1) > self.context_length:
            raise ValueError("sequence is longer than context_length")
        x = x + self.pe[: x.size(0)]
        return self.dropout(x)


def permutation_gap(block: Callable[[Tensor], Tensor], x: Tensor, permutation: Tensor) -> Tensor:
    return (block(x[:, permutation]) - block(x)[:, permutation]).abs().max()
