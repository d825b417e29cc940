# mistake: positions_from_one
import math

import torch
from torch import nn


def sinusoidal(context_length, d_model, base=10000.0):
    result = torch.empty(context_length, d_model)
    pos = torch.arange(1, context_length + 1).view(-1, 1)
    w = torch.exp(torch.arange(0, d_model, 2) * (-math.log(base) / d_model))
    result[:, ::2] = (pos * w).sin()
    result[:, 1::2] = (pos * w[: d_model // 2]).cos()
    return result


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, context_length, dropout=0.0):
        super().__init__()
        self.p = nn.Dropout(dropout)
        self.register_buffer("pos", sinusoidal(context_length, d_model), persistent=False)

    def forward(self, x):
        _, n, _ = x.size()
        if n > self.pos.size(0):
            raise ValueError("context exceeded")
        return self.p(x + self.pos[:n, :])


def permutation_gap(block, x, permutation):
    shuffled = block(x[:, permutation])
    plain = block(x)
    return (shuffled - plain[:, permutation]).abs().amax()
