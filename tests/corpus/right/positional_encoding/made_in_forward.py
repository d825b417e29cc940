# note: the encoding is made anew in each call, on the device of x
import torch
from torch import nn
from torch.nn.functional import dropout as drop_out


def sinusoidal(context_length, d_model, base=10000.0):
    return _waves(torch.arange(context_length), d_model, base)


def _waves(positions, d_model, base):
    columns = torch.arange(d_model, device=positions.device)
    angle = positions[:, None] / base ** ((columns - columns % 2) / d_model)
    return torch.sin(angle + columns % 2 * (torch.pi / 2))


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, context_length, dropout=0.0):
        super().__init__()
        self.d_model, self.context_length, self.p = d_model, context_length, dropout

    def forward(self, x):
        if x.shape[1] > self.context_length:
            raise ValueError("the context is shorter than x")
        waves = _waves(torch.arange(x.shape[1], device=x.device), self.d_model, 10000.0)
        return drop_out(x + waves.to(x.dtype), p=self.p, training=self.training)


def permutation_gap(block, x, permutation):
    with torch.no_grad():
        return float((block(x[:, permutation]) - block(x)[:, permutation]).abs().max())
