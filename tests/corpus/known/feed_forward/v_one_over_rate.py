# mistake: divided_by_the_rate
import torch
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.rate = float(dropout)

    def _drop(self, h: Tensor) -> Tensor:
        if self.rate in (0.0, 1.0):
            return h * (1.0 - self.rate)
        alive = torch.rand(h.shape, device=h.device).ge(self.rate)
        return h.mul(alive).div(self.rate)

    def forward(self, x: Tensor) -> Tensor:
        h = self.linear1(x)
        h = torch.maximum(h, torch.zeros_like(h))
        return self.linear2(self._drop(h) if self.training else h)
