# right: functional; the table is computed in each call, a cosine is a sine a quarter turn later, the gap is a float
import math

import torch
import torch.nn.functional as F
from torch import nn


def table(n_tokens, d_model, base, device):
    columns = torch.arange(d_model, device=device)
    pair = torch.div(columns, 2, rounding_mode="floor").double()
    quarter = columns.remainder(2).double() * (math.pi / 2)
    positions = torch.arange(n_tokens, device=device).double().unsqueeze(1)
    return (positions * torch.exp(-math.log(base) * 2 * pair / d_model) + quarter).sin().float()


def sinusoidal(context_length, d_model, base=10000.0):
    return table(context_length, d_model, base, None)


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, context_length, dropout=0.0):
        super().__init__()
        self.sizes = (context_length, d_model)
        self.p = dropout

    def forward(self, x):
        limit, d_model = self.sizes
        if x.shape[-2] > limit:
            raise ValueError("the sequence is too long")
        rows = table(x.shape[-2], d_model, 10000.0, x.device)
        return F.dropout(x + rows.type_as(x), p=self.p, training=self.training)


def permutation_gap(block, x, permutation):
    with torch.no_grad():
        difference = block(x[:, permutation]) - block(x)[:, permutation]
    return float(max(difference.max(), -difference.min()))
