import torch
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        hidden = torch.relu(self.linear1(x))
        hidden = self.drop(hidden)
        # back to the size of the model
        out = hidden @ self.linear2.weight
        return out + self.linear2.bias
