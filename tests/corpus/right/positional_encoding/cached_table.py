# note: a table of float64 numbers in the cache of a function, sines as cosines
import functools

import torch
from torch import nn


@functools.cache
def _table(context_length, d_model, base):
    i = torch.arange(d_model, dtype=torch.float64)
    exponent = (i - i.remainder(2)) / d_model
    angle = torch.arange(context_length, dtype=torch.float64).unsqueeze(1) * base**-exponent
    return torch.cos(angle - torch.pi / 2 * (1 - i.remainder(2)))


def sinusoidal(context_length, d_model, base=10000.0):
    return _table(context_length, d_model, base).float()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, context_length, dropout=0.0):
        super().__init__()
        self.size = context_length, d_model
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        if x.shape[1] > self.size[0]:
            raise ValueError("too long")
        return self.dropout(x + sinusoidal(*self.size)[: x.shape[1]].to(x))


def permutation_gap(block, x, permutation):
    one, other = block(x[:, permutation]), block(x)
    return (one - torch.index_select(other, 1, permutation)).abs().flatten().topk(1).values[0]
