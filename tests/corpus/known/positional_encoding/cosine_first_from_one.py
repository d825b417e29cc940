# mistake: positions_from_one + sines_and_cosines_swapped
import torch
from torch import nn


def sinusoidal(context_length, d_model, base=10000.0):
    columns = torch.arange(d_model)
    rates = base ** (-(columns // 2 * 2) / d_model)
    angles = (torch.arange(context_length) + 1)[:, None] * rates
    return torch.where(columns % 2 == 1, torch.sin(angles), torch.cos(angles))


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, context_length, dropout=0.0):
        super().__init__()
        self.context_length = context_length
        self.rate = dropout
        self.register_buffer("encoding", sinusoidal(context_length, d_model), False)

    def forward(self, x):
        if x.shape[1] > self.context_length:
            raise ValueError
        x = x + self.encoding.narrow(0, 0, x.shape[1])
        return nn.functional.dropout(x, self.rate, self.training)


def permutation_gap(block, x, permutation):
    moved = x.index_select(1, permutation)
    return torch.max(torch.abs(block(moved) - block(x).index_select(1, permutation))).item()
