# mistake: dropout_in_eval
import torch
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.between = [nn.ReLU(), nn.Dropout(dropout)]

    def forward(self, x: Tensor) -> Tensor:
        h = self.linear1(x)
        for step in self.between:
            h = step(h)
        return self.linear2(h)
