# mistake: rate_hard_coded + another_dtype_joins
import torch
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x):
        hidden = self.linear1(x)
        hidden = torch.max(hidden, torch.zeros(hidden.size()))
        return self.linear2(self.dropout(hidden))
