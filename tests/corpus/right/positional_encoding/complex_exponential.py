# note: powers of a complex number, whose imaginary and real parts are interleaved
import torch
from torch import nn


def sinusoidal(context_length, d_model, base=10000.0):
    n_pairs = -(-d_model // 2)
    rate = base ** (-2 * torch.arange(n_pairs, dtype=torch.float64) / d_model)
    position = torch.arange(context_length, dtype=torch.float64)
    wave = torch.polar(torch.ones(context_length, n_pairs, dtype=torch.float64), position[:, None] * rate)
    return torch.view_as_real(wave).flip(-1).flatten(1)[:, :d_model].float()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, context_length, dropout=0.0):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.register_buffer("table", sinusoidal(context_length, d_model), persistent=False)

    def forward(self, x):
        n_tokens = x.shape[1]
        if n_tokens > self.table.shape[0]:
            raise ValueError(f"{n_tokens} tokens do not fit")
        return self.drop(x + self.table[:n_tokens])


def permutation_gap(block, x, permutation):
    return (block(x[:, permutation]) - block(x)[:, permutation]).abs().max()
