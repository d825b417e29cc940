# right: dropout by hand acts before the ReLU, which gives the same numbers because the factors are never negative
import torch
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear2 = nn.Linear(d_ff, d_model)
        self.linear1 = nn.Linear(d_model, d_ff)
        self.rate = dropout

    def forward(self, x: Tensor) -> Tensor:
        z = self.linear1(x)
        if self.training and self.rate > 0:
            gone = torch.rand(z.shape, device=z.device) < self.rate
            z = z.masked_fill(gone, 0.0)
            if self.rate < 1:
                z = z / (1 - self.rate)
        return self.linear2(z.clamp(min=0))
