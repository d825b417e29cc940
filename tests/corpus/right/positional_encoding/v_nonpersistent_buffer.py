# style: nn.Buffer(persistent=False), rows taken by narrow and expand, own dropout with empty_like().bernoulli_
import torch
from torch import nn


def sinusoidal(context_length, d_model, base=10000.0):
    positions = torch.arange(context_length, dtype=torch.float64)
    pairs = torch.arange((d_model + 1) // 2, dtype=torch.float64)
    angles = positions[:, None] * base ** (-2 * pairs / d_model)
    both = torch.stack([torch.sin(angles), torch.cos(angles)], dim=2)
    return both.reshape(context_length, -1)[:, :d_model].float()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, context_length, dropout=0.0):
        super().__init__()
        self.keep = 1.0 - dropout
        self.encoding = nn.Buffer(sinusoidal(context_length, d_model), persistent=False)

    def forward(self, x):
        n = x.shape[1]
        if n > self.encoding.shape[0]:
            raise ValueError("too many tokens")
        y = x + self.encoding.narrow(0, 0, n).expand(x.shape)
        if not self.training or self.keep == 1.0:
            return y
        return y * torch.empty_like(y).bernoulli_(self.keep) / (self.keep or 1.0)


def permutation_gap(block, x, permutation):
    permuted = block(x)[:, permutation]
    return torch.dist(block(x[:, permutation]), permuted, p=float("inf"))
