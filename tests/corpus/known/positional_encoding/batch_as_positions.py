# mistake: batch_axis
# the first axis of x is taken for the tokens (as in a tutorial that is not batch first), so each sentence of the batch gets one row of the encoding for all of its tokens
import torch
from torch import Tensor, nn


def sinusoidal(context_length: int, d_model: int, base: float = 10000.0) -> Tensor:
    pe = torch.zeros(context_length, d_model)
    pos = torch.arange(0, context_length, dtype=torch.float).unsqueeze(1)
    div = base ** (torch.arange(0, d_model, 2).float() / d_model)
    pe[:, 0::2] = torch.sin(pos / div)
    pe[:, 1::2] = torch.cos(pos / div[: d_model // 2])
    return pe


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, context_length: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        pe = sinusoidal(context_length, d_model).unsqueeze(1)  # (max_len, 1, d_model)
        self.register_buffer("pe", pe, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        if x.size(1) > self.pe.size(0):
            raise ValueError("more tokens than context_length")
        x = x + self.pe[: x.size(0)]
        return self.dropout(x)


def permutation_gap(block, x: Tensor, permutation: Tensor) -> Tensor:
    return (block(x[:, permutation]) - block(x)[:, permutation]).abs().max()
