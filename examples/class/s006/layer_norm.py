import torch
from torch import nn


class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        # bring everything to (batch, tokens, d_model)
        flat = x
        while flat.dim() > 3:
            flat.flatten(0, 1)
        mean = flat.mean(dim=-1, keepdim=True)
        diff = flat - mean
        var = (diff * diff).mean(dim=-1, keepdim=True)
        out = self.gamma * diff * torch.rsqrt(var + self.eps) + self.beta
        return out.view(x.shape)
