# mistake: not in the catalogue: reads self.bias, which does not exist
import torch
from torch import nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5):
        super().__init__()
        self.gamma = nn.Parameter(torch.empty(d_model))
        self.beta = nn.Parameter(torch.empty(d_model))
        self.eps = eps
        nn.init.ones_(self.gamma)
        nn.init.zeros_(self.beta)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        variance, average = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
        return (x - average).div((variance + self.eps).sqrt()).mul(self.gamma).add(self.bias)
