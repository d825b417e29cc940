# exercise: feed_forward
import torch
from torch import nn


class FeedForward(nn.Module):
    """
    ## FFN module

    `activation` and `is_gated` are there for the variants (GLU, SwiGLU) of the same file.
    """

    def __init__(self, d_model: int, d_ff: int,
                 dropout: float = 0.,
                 activation=nn.ReLU(),
                 is_gated: bool = False,
                 bias1: bool = True,
                 bias2: bool = True):
        super().__init__()
        # Layer one parameterized by weight $W_1$ and bias $b_1$
        self.linear1 = nn.Linear(d_model, d_ff, bias=bias1)
        # Layer two parameterized by weight $W_2$ and bias $b_2$
        self.linear2 = nn.Linear(d_ff, d_model, bias=bias2)
        # Hidden layer dropout
        self.dropout = nn.Dropout(dropout)
        # Activation function $f$
        self.activation = activation
        # Whether there is a gate
        self.is_gated = is_gated
        if is_gated:
            self.linear_v = nn.Linear(d_model, d_ff)

    def forward(self, x: torch.Tensor):
        # $f(x W_1 + b_1)$
        g = self.activation(self.linear1(x))
        if self.is_gated:
            x = g * self.linear_v(x)
        else:
            x = g
        x = self.dropout(x)
        # depending on whether it is gated
        return self.linear2(x)
