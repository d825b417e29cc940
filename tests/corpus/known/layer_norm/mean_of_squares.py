# mistake: mean_of_squares_minus_square_of_mean
# the variance is computed as mean(x^2) - mean^2, which loses all digits for features far from 0
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[-1]
        mean = x.sum(-1, keepdim=True) / n
        mean_sq = (x * x).sum(-1, keepdim=True) / n
        var = (mean_sq - mean**2).clamp_min(0)
        return self.gamma * ((x - mean) / (var + self.eps).sqrt()) + self.beta
