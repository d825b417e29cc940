# style: nothing is stored but an empty anchor buffer; a property computes the table on its device
import torch
import torch.nn.functional as F
from torch import nn


def sinusoidal(context_length, d_model, base=10000.0):
    position = torch.arange(context_length, dtype=torch.float64)
    exponent = torch.arange(0, d_model, 2, dtype=torch.float64) / d_model
    angle = torch.outer(position, torch.pow(base, -exponent))
    table = torch.empty(context_length, d_model)
    table[:, ::2] = angle.sin()
    table[:, 1::2] = angle.cos()[:, : d_model // 2]
    return table


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, context_length, dropout=0.0):
        super().__init__()
        self.d_model, self.context_length, self.dropout = d_model, context_length, dropout
        self.register_buffer("anchor", torch.empty(0), persistent=False)

    @property
    def table(self):
        with torch.device(self.anchor.device):
            return sinusoidal(self.context_length, self.d_model).to(self.anchor.dtype)

    def forward(self, x):
        n_tokens = x.size(1)
        if n_tokens > self.context_length:
            raise ValueError("too many tokens")
        return F.dropout(x + self.table[:n_tokens], p=self.dropout, training=self.training)


def permutation_gap(block, x, permutation):
    a, b = block(x[:, permutation]), block(x)[:, permutation]
    return (a - b).abs().max().item()
