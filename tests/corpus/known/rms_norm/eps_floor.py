# mistake: eps_as_lower_bound
# eps is a floor (clamp) and not an addend
import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        h = x.double() if x.dtype == torch.float64 else x.float()
        ms = h.pow(2).mean(-1, keepdim=True).clamp(min=self.eps)
        return (h / ms.sqrt() * self.gamma.to(h.dtype)).to(x.dtype)
