# mistake: halves
from collections.abc import Callable
import torch
from torch import Tensor, nn


def sinusoidal(context_length, d_model, base=10000.0):
    pos = torch.arange(context_length, dtype=torch.float64)
    exponent = torch.arange(0, d_model, 2, dtype=torch.float64) / d_model
    inv_freq = 1.0 / (base ** exponent)
    angles = torch.einsum("p,i->pi", pos, inv_freq)
    emb = torch.cat([angles.sin(), angles.cos()], dim=-1)
    return emb[:, :d_model].float()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, context_length, dropout=0.0):
        super().__init__()
        self.drop = nn.Dropout(p=dropout)
        self.register_buffer("pe", sinusoidal(context_length, d_model).unsqueeze(0), persistent=False)

    def forward(self, x):
        if x.size(1) > self.pe.size(1):
            raise ValueError("sequence is too long")
        return self.drop(x + self.pe[:, : x.size(1)])


def permutation_gap(block, x, permutation):
    a = block(x[:, permutation, :])
    b = block(x)[:, permutation, :]
    return torch.max(torch.abs(a - b))
