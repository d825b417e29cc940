# mistake: no_activation + dropout_on_the_output
import torch.nn as nn
import torch.nn.functional as F


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.dropout = dropout

    def forward(self, x):
        a = self.linear1(x)
        return F.dropout(self.linear2(a), self.dropout, self.training)
