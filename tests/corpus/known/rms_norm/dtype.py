# mistake: not_cast_back
# returns float32 for a half-precision input, as gamma is float32
import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        dtype = x.dtype
        h = x if dtype == torch.float64 else x.to(torch.float32)
        h = h * torch.rsqrt(h.square().mean(-1, keepdim=True) + self.eps)
        return self.gamma * h.to(dtype)
