# note: numpy, gather, a maximum of two one-sided maxima
import numpy as np
import torch
from torch import nn


def sinusoidal(context_length, d_model, base=10000.0):
    p, j = np.meshgrid(np.arange(context_length), np.arange(d_model), indexing="ij")
    angle = p / np.power(float(base), 2 * (j // 2) / d_model)
    return torch.from_numpy(np.where(j % 2, np.cos(angle), np.sin(angle)).astype(np.float32))


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, context_length, dropout=0.0):
        super().__init__()
        self.register_buffer("rows", sinusoidal(context_length, d_model), persistent=False)
        self.after = nn.Dropout(dropout)

    def forward(self, x):
        if x.shape[-2] > self.rows.shape[-2]:
            raise ValueError(f"at most {self.rows.shape[-2]} tokens")
        return self.after(self.rows.narrow(-2, 0, x.shape[-2]).to(x.dtype) + x)


def permutation_gap(block, x, permutation):
    index = permutation.view(1, -1, 1).expand_as(x)
    difference = block(x.gather(1, index)) - block(x).gather(1, index)
    return max(difference.max().item(), -difference.min().item())
