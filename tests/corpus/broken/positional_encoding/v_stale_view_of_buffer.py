# promise: forward uses a view of the buffer taken in __init__, which stays on the CPU
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def sinusoidal(context_length, d_model, base=10000.0):
    n_pairs = (d_model + 1) // 2
    i = torch.arange(n_pairs, dtype=torch.float64)
    frequency = torch.exp(-math.log(base) * 2 * i / d_model)
    angle = torch.outer(torch.arange(context_length, dtype=torch.float64), frequency)
    waves = torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1)
    return waves[:, :d_model].to(torch.float32)


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, context_length, dropout=0.0):
        super().__init__()
        self.context_length = context_length
        self.p = dropout
        self.register_buffer("encoding", sinusoidal(context_length, d_model), persistent=False)
        # with an axis for the batch
        self.batched = self.encoding[None]

    def forward(self, x):
        if x.shape[1] > self.context_length:
            raise ValueError("too many tokens for this encoding")
        y = x + self.batched[:, : x.shape[1]].to(dtype=x.dtype)
        return F.dropout(y, self.p, self.training)


def permutation_gap(block, x, permutation):
    a = block(x[:, permutation])
    b = block(x)[:, permutation]
    return float((a - b).abs().max())
