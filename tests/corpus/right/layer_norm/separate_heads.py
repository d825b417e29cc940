"""Layer normalisation with a small helper that standardises the last axis."""

import torch
from torch import nn


def standardise(x, eps):
    centred = x - x.mean(dim=-1, keepdim=True)
    variance = centred.pow(2).mean(dim=-1, keepdim=True)
    return centred / torch.sqrt(variance + eps)


class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        return self.gamma * standardise(x, self.eps) + self.beta
