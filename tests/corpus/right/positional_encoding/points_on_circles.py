# right: complex numbers of length one, written as pairs of columns
import torch
from torch import nn


def sinusoidal(context_length, d_model, base=10000.0):
    pairs = (d_model + 1) // 2
    rate = torch.tensor(float(base), dtype=torch.float64).pow(
        -2 * torch.arange(pairs, dtype=torch.float64) / d_model
    )
    angle = torch.outer(torch.arange(context_length, dtype=torch.float64), rate)
    points = torch.polar(torch.ones_like(angle), torch.pi / 2 - angle)  # sin + i cos
    return torch.view_as_real(points).flatten(1)[:, :d_model].float().contiguous()


class PositionalEncoding(nn.Sequential):
    class Add(nn.Module):
        def __init__(self, table):
            super().__init__()
            self.register_buffer("table", table, persistent=False)

        def forward(self, x):
            try:
                return torch.add(x, self.table.narrow(0, 0, x.size(1)))
            except RuntimeError:
                raise ValueError("too many tokens") from None

    def __init__(self, d_model, context_length, dropout=0.0):
        super().__init__(self.Add(sinusoidal(context_length, d_model)), nn.Dropout(p=dropout))


def permutation_gap(block, x, permutation):
    first = block(x).index_select(1, permutation)
    second = block(x.index_select(1, permutation))
    return torch.dist(first.detach(), second.detach(), p=float("inf"))
