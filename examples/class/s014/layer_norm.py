import torch
from torch import nn


class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x):
        x = x - x.mean(-1, keepdim=True)
        var = (x * x).mean(-1, keepdim=True)
        return self.gamma * (x / (var + self.eps).sqrt()) + self.beta
