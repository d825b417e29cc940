# broken: "In training, each unit is set to 0 with probability dropout": under torch.no_grad() nothing is dropped in training mode
import torch
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.relu(self.linear1(x))
        if self.training and torch.is_grad_enabled():
            hidden = self.dropout(hidden)
        return self.linear2(hidden)
