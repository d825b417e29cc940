# mistake: sizes_swapped
import torch
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        sizes = [(d_ff, d_model), (d_model, d_ff)]  # (rows, columns) of the two matrices
        self.linear1, self.linear2 = (nn.Linear(*s) for s in sizes)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.dropout(self.linear1(x).relu())
        return self.linear2(hidden)
