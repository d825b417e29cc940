"""Positional encoding with an outer product, stacked pairs and a cut."""

import torch
from torch import nn


def sinusoidal(context_length, d_model, base=10000.0):
    n_pairs = (d_model + 1) // 2
    rates = float(base) ** -(torch.arange(n_pairs, dtype=torch.float64) * 2 / d_model)
    positions = torch.arange(context_length, dtype=torch.float64)
    angles = torch.einsum("p,i->pi", positions, rates)
    pairs = torch.stack([torch.sin(angles), torch.cos(angles)], dim=2)
    return pairs.reshape(context_length, 2 * n_pairs)[:, :d_model].to(torch.float32)


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, context_length, dropout=0.0):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("pe", sinusoidal(context_length, d_model), persistent=False)

    def forward(self, x):
        length = x.shape[1]
        if length > self.pe.shape[0]:
            raise ValueError(f"a sentence of {length} tokens is too long")
        return self.dropout(x + self.pe[:length])


def permutation_gap(block, x, permutation):
    matrix = torch.nn.functional.one_hot(permutation, len(permutation)).to(x.dtype)
    before = block(torch.einsum("ij,bjd->bid", matrix, x))
    after = torch.einsum("ij,bjd->bid", matrix, block(x))
    return (before - after).abs().amax()
