# mistake: exponent_halved
# the exponent is i / d_model for pair i instead of 2i / d_model
import math

import torch
from torch import Tensor, nn


def sinusoidal(context_length: int, d_model: int, base: float = 10000.0) -> Tensor:
    pe = torch.zeros(context_length, d_model)
    p = torch.arange(context_length).float()[:, None]
    n_pairs = math.ceil(d_model / 2)
    i = torch.arange(n_pairs).float()[None, :]
    angle = p / torch.pow(torch.tensor(base), i / d_model)
    pe[:, 0::2] = torch.sin(angle)
    pe[:, 1::2] = torch.cos(angle)[:, : d_model // 2]
    return pe


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, context_length: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.context_length = context_length
        self.register_buffer("encoding", sinusoidal(context_length, d_model), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] > self.context_length:
            raise ValueError(f"{x.shape[1]} > {self.context_length}")
        return self.drop(x + self.encoding[: x.shape[1]])


def permutation_gap(block, x, permutation):
    permuted = x[:, permutation, :]
    return torch.max(torch.abs(block(permuted) - block(x)[:, permutation, :]))
