# exercise: feed_forward
import torch
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.rate = dropout

    def _drop(self, h: Tensor) -> Tensor:
        if not self.training or self.rate == 0.0:
            return h
        if self.rate == 1.0:
            return h * 0
        kept = torch.bernoulli(torch.full_like(h, 1 - self.rate, dtype=torch.float32)).bool()
        return torch.where(kept, h / (1 - self.rate), torch.zeros_like(h))

    def forward(self, x: Tensor) -> Tensor:
        z = self.linear1(x)
        z = torch.where(z > 0, z, torch.zeros_like(z))
        return self.linear2(self._drop(z))
