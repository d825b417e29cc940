from torch import nn
from torch.nn.functional import dropout as drop
from torch.nn.functional import relu


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.rate = dropout
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        h = relu(self.linear1(x))
        h = drop(h, self.rate, training=self.training)
        return self.linear2(h)
