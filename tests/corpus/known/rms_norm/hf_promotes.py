# mistake: not_cast_back
# Hugging Face's order: casts first and then multiplies by gamma, so a float32 gamma makes a bfloat16 x float32.
import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones((d_model,)))
        self.eps = eps

    def forward(self, x):
        y = x.double()
        mean_square = torch.einsum("...i,...i->...", y, y) / x.shape[-1]
        y = torch.einsum("...i,...->...i", y, mean_square.add(self.eps).rsqrt())
        return self.gamma * y.to(x.dtype)
