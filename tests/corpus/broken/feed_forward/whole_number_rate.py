# broken: "at rate 1, all are 0": a rate that is an int, as in FeedForward(4, 8, 1), is ignored; 1.0 works
import torch
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout) if isinstance(dropout, float) else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.relu(self.linear1(x))
        return self.linear2(self.dropout(hidden))
