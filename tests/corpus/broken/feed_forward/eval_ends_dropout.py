# broken: "In training, each unit is set to 0 with probability dropout": a call in eval mode sets the rate to 0 for good, so nothing is dropped in training after it
import torch
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            self.dropout.p = 0.0
        hidden = torch.relu(self.linear1(x))
        return self.linear2(self.dropout(hidden))
