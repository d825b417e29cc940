# mistake: mean_over_everything
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        diff = x - x.mean()
        power = (diff * diff).sum() / x.numel()
        return self.beta + self.gamma * diff / (power + self.eps).sqrt()
