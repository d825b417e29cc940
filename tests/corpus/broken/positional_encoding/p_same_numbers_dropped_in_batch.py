# promise: One dropout mask is drawn per call and used for all items of the batch, so their numbers are not dropped independently.
import torch
from torch import Tensor, nn


def sinusoidal(context_length: int, d_model: int, base: float = 10000.0) -> Tensor:
    encoding = torch.zeros(context_length, d_model, dtype=torch.float64)
    p = torch.arange(context_length, dtype=torch.float64)[:, None]
    angle = p / base ** (torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    encoding[:, 0::2] = torch.sin(angle)
    encoding[:, 1::2] = torch.cos(angle[:, : d_model // 2])
    return encoding.float()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, context_length: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("encoding", sinusoidal(context_length, d_model), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] > self.encoding.shape[0]:
            raise ValueError("more tokens than context_length")
        keep = self.dropout(torch.ones_like(x[0]))
        return (x + self.encoding[: x.shape[1]]) * keep


def permutation_gap(block, x: Tensor, permutation: Tensor) -> Tensor:
    return (block(x[:, permutation]) - block(x)[:, permutation]).abs().max()
