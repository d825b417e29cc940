# mistake: token_axis
# the mean square is taken over the tokens
import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        h = x.double() if x.dtype == torch.float64 else x.float()
        ms = torch.mean(h ** 2, dim=-2 if h.dim() > 1 else -1, keepdim=True)
        return (h * ms.add(self.eps).rsqrt() * self.gamma.to(h.dtype)).to(x.dtype)
