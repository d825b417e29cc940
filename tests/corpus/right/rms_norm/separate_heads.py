# right
import torch
from torch import nn


def mean_square(x):
    return torch.square(x).sum(dim=-1, keepdim=True).div(x.size(-1))


def normalise(x, eps):
    return torch.div(x, torch.sqrt(torch.add(mean_square(x), eps)))


def scale(x, gamma):
    return torch.mul(x, gamma)


class RMSNorm(nn.Module):
    """Each step of the formula is a function of its own."""

    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.register_parameter("gamma", nn.Parameter(torch.full((d_model,), 1.0)))
        self.eps = eps

    def forward(self, x):
        kind = torch.promote_types(x.dtype, torch.float32)
        wide = x.to(kind)
        normed = normalise(wide, self.eps)
        scaled = scale(normed, self.gamma.to(kind))
        return scaled.type(x.dtype)
