# exercise: layer_norm
# promise: gamma (d_model,) and beta (d_model,) (both have shape (1, d_model))
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(1, d_model))
        self.beta = nn.Parameter(torch.zeros(1, d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        c = x - x.mean(-1, keepdim=True)
        return c * torch.rsqrt(c.square().mean(-1, keepdim=True) + self.eps) * self.gamma + self.beta
