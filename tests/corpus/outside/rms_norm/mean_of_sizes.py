# mistake: not in the catalogue: the mean of the absolute values in place of the root of the mean square
import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.eps = eps

    def forward(self, x):
        wide = x.double() if x.dtype == torch.float64 else x.float()
        size = wide.abs().mean(-1, keepdim=True) + self.eps
        return (wide / size * self.gamma).to(x.dtype)
