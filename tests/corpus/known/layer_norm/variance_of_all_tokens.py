# mistake: one_variance_for_all_tokens
import torch
import torch.nn as nn


class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.e = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        avg = x.mean(-1, keepdim=True)
        delta = x - avg
        v = (delta**2).mean((-2, -1), keepdim=True)
        xhat = delta * torch.rsqrt(v + self.e)
        return xhat * self.gamma + self.beta
