# right: the twin of one with a mistake, squares
# seen: tracel-ai/burn issue 5607 (burn-flex). Mistake: the variance is mean(x^2) - mean^2, which cancels for features far from 0. (Fixed in this twin.)
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
        gap = y - mean
        var = (gap * gap).sum(dim=-1, keepdim=True) / self.d_model
        out = (y - mean) / (var + self.eps) ** 0.5
        out = out * self.gamma + self.beta
        return out.to(x.dtype)
