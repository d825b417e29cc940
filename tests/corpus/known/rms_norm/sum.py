# mistake: sum_for_mean
# divides by the length of the row (sum of squares), not by the root of the mean
import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        h = x.double() if x.dtype == torch.float64 else x.float()
        ss = torch.einsum("...i,...i->...", h, h).unsqueeze(-1)
        return (h / (ss + self.eps).sqrt() * self.gamma.to(h.dtype)).to(x.dtype)
