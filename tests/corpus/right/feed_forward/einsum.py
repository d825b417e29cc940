"""Position-wise feed-forward network in einsum notation (m model feature, f hidden feature)."""

import torch
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        a = torch.einsum("...m,fm->...f", x, self.linear1.weight) + self.linear1.bias
        a = self.drop(torch.where(a <= 0, 0, a))  # ReLU
        return torch.einsum("...f,mf->...m", a, self.linear2.weight) + self.linear2.bias
