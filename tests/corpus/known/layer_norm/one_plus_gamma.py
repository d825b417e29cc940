# mistake: gamma_counts_from_one
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
        c = x - mean
        var = torch.einsum("...d,...d->...", c, c)[..., None] / n
        std = (var + self.eps) ** 0.5
        return torch.einsum("d,...d->...d", 1 + self.gamma, c / std) + self.beta
