# mistake: tied_weights
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        W, b1, b2 = self.linear1.weight, self.linear1.bias, self.linear2.bias
        hidden = self.dropout(F.relu(F.linear(x, W, b1)))
        return hidden @ W + b2
