# exercise: feed_forward
import torch
from torch import Tensor, nn


def relu(h: Tensor) -> Tensor:
    return torch.maximum(h, torch.zeros((), dtype=h.dtype, device=h.device))


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.add_module("linear1", nn.Linear(d_model, d_ff))
        self.add_module("linear2", nn.Linear(d_ff, d_model))
        self.add_module("dropout", nn.Dropout(dropout))

    def forward(self, x: Tensor) -> Tensor:
        x = self.linear1(x)
        x = relu(x)
        x = self.dropout(x)
        x = self.linear2(x)
        return x
