# promise: the table is a numpy array, turned into a CPU tensor at each call
import numpy as np
import torch
from torch import nn


def sinusoidal(context_length, d_model, base=10000.0):
    pos = np.arange(context_length)[:, np.newaxis]
    i = np.arange(d_model)[np.newaxis, :]
    angles = pos / np.power(base, (2 * (i // 2)) / d_model)
    angles[:, 0::2] = np.sin(angles[:, 0::2])
    angles[:, 1::2] = np.cos(angles[:, 1::2])
    return torch.from_numpy(angles.astype(np.float32))


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, context_length, dropout=0.0):
        super().__init__()
        self.encoding = sinusoidal(context_length, d_model).numpy()
        self.dropout = nn.Dropout(p=dropout)

    def forward(self, x):
        n_tokens = x.shape[1]
        if n_tokens > len(self.encoding):
            raise ValueError("x has more tokens than context_length")
        rows = torch.tensor(self.encoding[:n_tokens], dtype=x.dtype)
        return self.dropout(x + rows)


def permutation_gap(block, x, permutation):
    permuted_output = block(x)[:, permutation, :]
    output_of_permuted = block(x[:, permutation, :])
    return torch.max(torch.abs(output_of_permuted - permuted_output))
