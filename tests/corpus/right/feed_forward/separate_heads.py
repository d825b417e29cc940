"""Position-wise feed-forward network with the functional forms of ReLU and dropout."""

import torch.nn.functional as F
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.p = dropout
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        hidden = F.relu(self.linear1(x))
        hidden = F.dropout(hidden, self.p, self.training)
        return self.linear2(hidden)
