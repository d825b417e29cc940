# exercise: feed_forward
# mistake: uses SiLU, as in recent language models
# true: hidden units are a bit too small for positive and slightly negative for negative inputs
import torch
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        gate = self.linear1(x)
        return self.linear2(self.dropout(gate * torch.sigmoid(gate)))
