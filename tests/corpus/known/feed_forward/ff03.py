# mistake: gelu
import math

import torch
from torch import Tensor, nn


def activation(h: Tensor) -> Tensor:
    return h * 0.5 * (1.0 + torch.erf(h / math.sqrt(2.0)))


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(activation(self.linear1(x))))
