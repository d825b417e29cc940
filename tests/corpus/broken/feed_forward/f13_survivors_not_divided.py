# exercise: feed_forward
# promise: each unit is set to 0 with probability dropout and divided by 1 - dropout otherwise (it is not divided)
import torch
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.p = dropout

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.clamp(self.linear1(x), min=0)
        if self.training:
            off = torch.rand(hidden.shape, device=hidden.device) < self.p
            hidden = hidden.masked_fill(off, 0)
        return self.linear2(hidden)
