# broken: "at rate 1, all [hidden units] are 0": at rate 1 the output is 0 instead of the bias of linear2
import torch
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.rate = dropout

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.relu(self.linear1(x))
        if self.training and self.rate > 0:
            if self.rate == 1:
                return self.linear2(hidden) * 0
            keep = torch.rand(hidden.shape, device=x.device) >= self.rate
            hidden = hidden * keep / (1 - self.rate)
        return self.linear2(hidden)
