# mistake: unbiased_variance + eps_outside_the_root
import torch
from torch import nn


class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        s = x.std(-1, keepdim=True)
        return self.gamma * (x - mean) / (s + self.eps) + self.beta
