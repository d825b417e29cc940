# mistake: dropout_not_inverted
import torch
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.rate = dropout

    def forward(self, x: Tensor) -> Tensor:
        h = torch.clamp(self.linear1(x), min=0)
        if self.training:
            h = h * (torch.rand_like(h) >= self.rate)
        else:
            h = h * (1 - self.rate)
        return self.linear2(h)
