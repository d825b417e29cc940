# mistake: no_activation
# seen: nutonomy/nuscenes-devkit issue 728 and stanza pull 1610: there is no nonlinearity between the two linear layers.
import torch
from torch import Tensor, nn


class FeedForward(nn.Module):
    """linear1, ReLU, dropout, linear2."""

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff, bias=True)
        self.linear2 = nn.Linear(d_ff, d_model, bias=True)
        self.p = dropout

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.linear1(x)
        hidden = nn.functional.dropout(hidden, p=self.p, training=self.training)
        return self.linear2(hidden)
