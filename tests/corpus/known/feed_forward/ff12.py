# mistake: writes_into_argument
import torch
from torch import Tensor, nn


class FeedForward(nn.Module):
    """Position-wise network that saves memory by reusing its input."""

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        h = self.dropout(nn.functional.relu(self.linear1(x.clone())))
        out = self.linear2(h)
        x.data.copy_(out.detach())
        return out
