# mistake: eps_outside_the_root
# eps is added to the root, not under it
import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        rms = torch.linalg.vector_norm(wide, dim=-1, keepdim=True) / wide.shape[-1] ** 0.5
        return (self.gamma.to(wide.dtype) * wide / (rms + self.eps)).to(x.dtype)
