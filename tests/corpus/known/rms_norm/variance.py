# mistake: deviation_for_mean_square
# Divides by the standard deviation around the mean, as layer norm does, instead of the root mean square.
import torch
from torch import nn


class RMSNorm(torch.nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))

    def _norm(self, x):
        return x * torch.rsqrt(x.var(-1, keepdim=True, unbiased=False) + self.eps)

    def forward(self, x):
        output = self._norm(x.float())
        return (output * self.gamma).type_as(x)
