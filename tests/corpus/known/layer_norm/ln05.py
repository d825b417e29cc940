# mistake: token_axis
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Tensor) -> Tensor:
        # features first, then every feature is one row
        rows = x.transpose(-1, -2)
        mu = rows.mean(dim=-1, keepdim=True)
        sigma2 = (rows - mu).square().mean(dim=-1, keepdim=True)
        normed = (rows - mu) / (sigma2 + self.eps).sqrt()
        return normed.transpose(-1, -2) * self.gamma + self.beta
