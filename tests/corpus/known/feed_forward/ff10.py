# mistake: dropout_on_the_output
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1, self.linear2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.rate = dropout

    def _drop(self, t: Tensor) -> Tensor:
        return F.dropout(t, p=self.rate, training=self.training)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self._drop(torch.relu(self.linear1(x)))
        return self._drop(self.linear2(hidden))
