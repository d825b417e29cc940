"""Feed-forward network as two addmm on a flat list of positions."""

from torch import nn


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.linear1, self.linear2, self._drop = (
            nn.Linear(d_model, d_ff),
            nn.Linear(d_ff, d_model),
            nn.Dropout(dropout),
        )

    def forward(self, x):
        mm = lambda a, l: l.bias.addmm(a, l.weight.t())
        return mm(
            self._drop(mm(x.reshape(-1, x.shape[-1]), self.linear1).relu()), self.linear2
        ).view(x.shape)
