# mistake: no_eps
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones((d_model,)))
        self.beta = nn.Parameter(torch.zeros((d_model,)))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        dev = x - x.mean(dim=-1, keepdim=True)
        var = dev.pow(2).mean(dim=-1, keepdim=True)
        constant = var <= 0
        x_hat = dev * torch.rsqrt(var.masked_fill(constant, 1.0))
        return torch.addcmul(self.beta, self.gamma, x_hat)
