# mistake: eps_as_lower_bound
import torch
from torch import nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5):
        super().__init__()
        self.gamma = nn.Parameter(torch.empty(d_model))
        self.beta = nn.Parameter(torch.empty(d_model))
        self.epsilon = eps
        nn.init.ones_(self.gamma)
        nn.init.zeros_(self.beta)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        v, m = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
        return (x - m).div(v.clamp(min=self.epsilon).sqrt()).mul(self.gamma).add(self.beta)
