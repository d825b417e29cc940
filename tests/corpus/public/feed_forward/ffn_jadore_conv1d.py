# exercise: feed_forward
''' position-wise feed forward as two 1x1 convolutions '''
import torch
import torch.nn as nn
import torch.nn.functional as F


class FeedForward(nn.Module):
    ''' A two-feed-forward-layer module '''

    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)  # position-wise
        self.linear2 = nn.Linear(d_ff, d_model)  # position-wise
        self.drop = nn.Dropout(dropout)

    @staticmethod
    def _conv(lin, inp):
        return F.conv1d(inp, lin.weight.unsqueeze(-1), lin.bias)

    def forward(self, x):
        # (N, L, C) -> (N, C, L), whatever the leading axes are
        flat = x.reshape(1, -1, x.size(-1)).transpose(1, 2)
        hid = self.drop(F.relu(self._conv(self.linear1, flat)))
        out = self._conv(self.linear2, hid)
        return out.transpose(1, 2).reshape(x.shape)
