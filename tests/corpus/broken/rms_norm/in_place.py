# broken: scales the caller's tensor in place when no cast makes a copy
import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        kept = x.dtype
        x = x.detach() if not x.requires_grad else x
        h = x if kept == torch.float64 else x.float()
        factor = torch.rsqrt((h * h).mean(-1, keepdim=True) + self.eps)
        if not h.requires_grad:
            h.mul_(factor)
        else:
            h = h * factor
        return (h * self.gamma.to(h.dtype)).to(kept)
