# broken: "each unit is set to 0 with probability dropout": the rate is rounded down to whole percents, so at rate 0.004 nothing is ever dropped
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
        if self.training and self.rate == 1:
            hidden = hidden * 0
        elif self.training:
            dice = torch.randint(100, hidden.shape, device=x.device)
            hidden = hidden * (dice >= int(self.rate * 100)) / (1 - self.rate)
        return self.linear2(hidden)
