# mistake: rate_of_keeping
import torch.nn as nn
import torch.nn.functional as F


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.keep = dropout

    def forward(self, x):
        hidden = F.relu(self.linear1(x))
        hidden = F.dropout(hidden, 1 - self.keep, self.training)
        return self.linear2(hidden)
