# mistake: width_ignored
import torch.nn as nn
import torch.nn.functional as F


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_model * 4)
        self.linear2 = nn.Linear(d_model * 4, d_model)
        self.dropout = dropout

    def forward(self, x):
        a = F.relu(self.linear1(x))
        a = F.dropout(a, self.dropout, self.training)
        return self.linear2(a)
