# mistake: statistics_detached
# the mean square is detached, so no gradient flows through the root
import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        h = x.double() if x.dtype == torch.float64 else x.float()
        with torch.no_grad():
            factor = torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + self.eps)
        return (h * factor * self.gamma.to(h.dtype)).to(x.dtype)
