# mistake: mean_of_squares_minus_square_of_mean
import torch
from torch import nn


class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x):
        n = x.size(-1)
        mean = torch.einsum("...d->...", x)[..., None] / n
        squares = torch.einsum("...d,...d->...", x, x)[..., None] / n
        var = squares - mean * mean
        std = (var + self.eps) ** 0.5
        return torch.einsum("d,...d->...d", self.gamma, (x - mean) / std) + self.beta
