# mistake: no_activation
import torch
from torch import nn


def dense(x, layer):
    return torch.einsum("...i,oi->...o", x, layer.weight) + layer.bias


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        z = dense(x, self.linear1)
        return dense(self.dropout(z), self.linear2)
