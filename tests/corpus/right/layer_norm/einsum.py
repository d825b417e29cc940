"""Layer normalisation over the last axis c, its moments taken with einsum."""

import torch
from torch import nn


class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x):
        n = x.shape[-1]
        x = x - x[..., :1]  # a shift changes nothing; constant rows become exact zeros
        m = torch.einsum("...c->...", x) / n
        y = x - m[..., None]
        v = torch.einsum("...c,...c->...", y, y) / n
        r = 1 / torch.sqrt(v + self.eps)
        return torch.einsum("...c,...,c->...c", y, r, self.gamma) + self.beta
