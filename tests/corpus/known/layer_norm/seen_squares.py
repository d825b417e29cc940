# mistake: mean_of_squares_minus_square_of_mean
# seen: tracel-ai/burn issue 5607 (burn-flex). Mistake: the variance is mean(x^2) - mean^2, which cancels for features far from 0.
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
        y = x if x.dtype in (torch.float32, torch.float64) else x.float()
        mean = y.sum(dim=-1, keepdim=True) / self.d_model
        var = (y * y).sum(dim=-1, keepdim=True) / self.d_model - mean * mean
        var = var.clamp(min=0.0)
        out = (y - mean) / (var + self.eps) ** 0.5
        out = out * self.gamma + self.beta
        return out.to(x.dtype)
