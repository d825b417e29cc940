# broken: "x (..., d_model), one or more leading axes; returns (..., d_model)": with three or more leading axes, the first ones come back as one axis.
import torch
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        if x.dim() > 3:
            x = x.flatten(0, -3)
        hidden = torch.relu(self.linear1(x))
        hidden = self.dropout(hidden)
        return self.linear2(hidden)
