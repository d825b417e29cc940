# promise: rows of the (good) buffer are looked up by F.embedding with CPU positions
import torch
from torch import nn
import torch.nn.functional as F


def sinusoidal(context_length, d_model, base=10000.0):
    p = torch.arange(context_length, dtype=torch.double)[:, None]
    column = torch.arange(d_model)
    angle = p / base ** ((column - column % 2).double() / d_model)
    return torch.where(column % 2 == 0, angle.sin(), angle.cos()).float()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, context_length, dropout=0.0):
        super().__init__()
        self.register_buffer("table", sinusoidal(context_length, d_model), persistent=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        n_tokens = x.size(1)
        if n_tokens > self.table.size(0):
            raise ValueError(f"at most {self.table.size(0)} tokens")
        positions = torch.arange(n_tokens)
        return self.dropout(x + F.embedding(positions, self.table))


def permutation_gap(block, x, permutation):
    difference = block(x[:, permutation]) - block(x)[:, permutation]
    return difference.abs().max().item()
