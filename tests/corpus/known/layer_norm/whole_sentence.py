# mistake: last_two_axes
# mean and variance are taken over all axes but the first (tokens and features together), not over the features of each token
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.d_model = d_model
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Tensor) -> Tensor:
        axes = tuple(range(1, x.dim()))
        mu = torch.mean(x, dim=axes, keepdim=True)
        diff = x - mu
        sigma2 = torch.mean(diff * diff, dim=axes, keepdim=True)
        return diff * torch.rsqrt(sigma2 + self.eps) * self.gamma + self.beta
