# right
import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        wide = x if x.dtype == torch.float64 else x.float()
        squares = torch.einsum("...d,...d->...", wide, wide) / x.shape[-1]
        scale = (squares + self.eps).rsqrt()
        out = torch.einsum("...d,...,d->...d", wide, scale, self.gamma.to(wide.dtype))
        return out.to(x.dtype)
