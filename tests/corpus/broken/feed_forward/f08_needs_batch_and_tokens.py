# exercise: feed_forward
# promise: one or more leading axes (exactly two are unpacked)
import torch
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        batch, n_tokens, d_model = x.shape
        h = self.linear1(x.reshape(batch * n_tokens, d_model)).clamp(min=0)
        return self.linear2(self.dropout(h)).reshape(batch, n_tokens, d_model)
