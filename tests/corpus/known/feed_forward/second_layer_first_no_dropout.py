# mistake: dropout_never_used
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.linear2 = nn.Linear(in_features=d_ff, out_features=d_model)
        self.linear1 = nn.Linear(in_features=d_model, out_features=d_ff)
        self.act = nn.ReLU()
        self.drop = nn.Dropout(p=dropout)

    def forward(self, x):
        out = self.linear1(x)
        out = self.act(out)
        out = self.linear2(out)
        return out
