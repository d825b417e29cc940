# mistake: single_layer
import torch
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.body = [self.linear1, nn.ReLU(), nn.Dropout(dropout), self.linear2]

    def forward(self, x: Tensor) -> Tensor:
        linear, relu, drop, *_ = self.body
        drop.train(self.training)
        return drop(relu(linear(x)))
