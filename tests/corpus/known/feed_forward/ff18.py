# mistake: residual_inside + gelu
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x
        for stage in (self.linear1, lambda t: F.gelu(t, approximate="tanh"), self.dropout, self.linear2):
            x = stage(x)
        return shortcut + x
