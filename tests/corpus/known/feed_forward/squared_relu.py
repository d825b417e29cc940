# mistake: another_activation
import torch
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.rate = dropout
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def _drop(self, hidden: Tensor) -> Tensor:
        if not self.training or self.rate == 0:
            return hidden
        if self.rate == 1:
            return torch.zeros_like(hidden)
        m = torch.rand_like(hidden) > self.rate
        return hidden * m / (1 - self.rate)

    def _hidden(self, x: Tensor) -> Tensor:
        return self.linear1(x).clamp(min=0) ** 2

    def forward(self, x: Tensor) -> Tensor:
        return self.linear2(self._drop(self._hidden(x)))
