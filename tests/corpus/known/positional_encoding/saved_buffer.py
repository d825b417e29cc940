# mistake: saved
# the encoding is a persistent buffer, so it is in the state_dict
import torch
from torch import Tensor, nn


def sinusoidal(context_length: int, d_model: int, base: float = 10000.0) -> Tensor:
    p = torch.arange(context_length, dtype=torch.float64)[:, None]
    i = torch.arange((d_model + 1) // 2, dtype=torch.float64)[None]
    angle = p / base ** (2 * i / d_model)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)[:, :d_model].float()


class PositionalEncoding(nn.Module):
    """x + encoding, with dropout on the sum."""

    def __init__(self, d_model: int, context_length: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.register_buffer("encoding", sinusoidal(context_length, d_model))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[-2]
        if n > self.encoding.shape[0]:
            raise ValueError("x has more tokens than context_length")
        return self.dropout(x + self.encoding[:n])


def permutation_gap(block, x: Tensor, permutation: Tensor) -> Tensor:
    return torch.amax((block(x[:, permutation]) - block(x)[:, permutation]).abs())
