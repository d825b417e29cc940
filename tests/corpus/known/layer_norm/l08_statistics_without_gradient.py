# mistake: statistics_detached
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    @torch.no_grad()
    def _stats(self, x):
        mean = x.mean(dim=-1, keepdim=True)
        var = ((x - mean) ** 2).mean(dim=-1, keepdim=True)
        return mean, var

    def forward(self, x: Tensor) -> Tensor:
        mean, var = self._stats(x)
        return self.gamma * (x - mean) / (var + self.eps) ** 0.5 + self.beta
