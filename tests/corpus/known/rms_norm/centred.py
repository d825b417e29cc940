# mistake: mean_subtracted
# the mean is subtracted first, as in layer norm
import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        h = x.double() if x.dtype == torch.float64 else x.float()
        var, mu = torch.var_mean(h, dim=-1, keepdim=True, unbiased=False)
        out = (h - mu) * torch.rsqrt(var + self.eps)
        return (out * self.gamma.to(h.dtype)).to(x.dtype)
