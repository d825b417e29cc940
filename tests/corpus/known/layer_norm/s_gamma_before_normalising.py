# mistake: gamma_before_normalising
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = float(eps)

    def forward(self, x: Tensor) -> Tensor:
        # centre first, which keeps the digits of features far from 0
        h = (x - x.mean(dim=-1, keepdim=True)) * self.gamma
        h = h - h.mean(dim=-1, keepdim=True)
        std = (h.var(dim=-1, keepdim=True, correction=0) + self.eps) ** 0.5
        return h / std + self.beta
