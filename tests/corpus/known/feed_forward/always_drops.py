# mistake: dropout_in_eval
import torch.nn as nn
import torch.nn.functional as F


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.dropout = dropout

    def forward(self, x):
        a = F.relu(self.linear1(x))
        a = F.dropout(a, p=self.dropout)
        return self.linear2(a)
