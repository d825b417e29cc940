# mistake: residual_inside
# x is added to the output (residual connection inside the network)
import torch
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(p=dropout)

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.clamp(self.linear1(x), min=0)
        out = self.linear2(self.dropout(hidden))
        return x + out
