# mistake: another_activation
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.linear1 = nn.Linear(in_features=d_model, out_features=d_ff)
        self.linear2 = nn.Linear(in_features=d_ff, out_features=d_model)
        self.relu = nn.Tanh()
        self.dropout = nn.Dropout(p=dropout)

    def forward(self, x):
        y = self.linear1(x)
        y = self.relu(y)
        y = self.dropout(y)
        y = self.linear2(y)
        return y
