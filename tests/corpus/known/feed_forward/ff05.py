# mistake: width_ignored
import torch
from torch import Tensor, nn


class FeedForward(nn.Module):
    EXPANSION = 4

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        width = self.EXPANSION * d_model
        self.linear1 = nn.Linear(d_model, width)
        self.linear2 = nn.Linear(width, d_model)
        self.act = nn.Sequential(nn.ReLU(), nn.Dropout(dropout))

    def forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.act(self.linear1(x)))
