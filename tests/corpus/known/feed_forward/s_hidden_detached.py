# mistake: hidden_detached
import torch
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.linear1(x).detach().clone()  # clone: no trouble with the in-place ReLU
        hidden[hidden < 0] = 0
        hidden = self.dropout(hidden)
        return self.linear2(hidden)
