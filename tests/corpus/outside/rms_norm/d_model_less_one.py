# mistake: not in the catalogue: the sum of the squares is divided by d_model - 1
import torch
import torch.nn as nn


class RMSNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.d_model, self.eps = d_model, eps
        self.gamma = nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        y = x if x.dtype == torch.float64 else x.float()
        squares = (y * y).sum(-1, keepdim=True) / max(1, self.d_model - 1)
        return (y * torch.rsqrt(squares + self.eps) * self.gamma).to(x.dtype)
