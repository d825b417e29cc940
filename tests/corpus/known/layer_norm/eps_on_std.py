# mistake: eps_outside_the_root
import torch
import torch.nn as nn


class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.dim = d_model
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        mean = x.sum(-1, keepdim=True) / self.dim
        xc = x - mean
        var = (xc**2).sum(-1, keepdim=True) / self.dim
        sigma = var.sqrt()
        normed = xc / (sigma + self.eps)
        return normed * self.gamma + self.beta
