# broken: "linear1 nn.Linear d_model -> d_ff": a d_ff smaller than d_model is replaced by d_model
import torch
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        d_ff = max(d_ff, d_model)
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.relu(self.linear1(x))
        return self.linear2(self.dropout(hidden))
