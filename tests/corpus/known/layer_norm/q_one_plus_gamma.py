# mistake: gamma_counts_from_one
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.zeros(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def _x_hat(self, x: Tensor) -> Tensor:
        x = x - x[..., 0:1]
        x = x - x.mean(-1, keepdim=True)
        return x / (x.var(-1, correction=0, keepdim=True) + self.eps).sqrt()

    def forward(self, x: Tensor) -> Tensor:
        x_hat = self._x_hat(x.to(torch.promote_types(x.dtype, torch.float32)))
        return (x_hat + x_hat * self.gamma + self.beta).to(x.dtype)
