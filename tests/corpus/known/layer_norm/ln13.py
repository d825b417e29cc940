# mistake: mean_not_subtracted
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        inv_std = (x.var(dim=-1, unbiased=False, keepdim=True) + self.eps).pow(-0.5)
        x_hat = x * inv_std
        return x_hat * self.gamma + self.beta
