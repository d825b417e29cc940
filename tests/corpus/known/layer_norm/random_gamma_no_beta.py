# mistake: random_gamma + beta_forgotten
import torch
from torch import nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5):
        super().__init__()
        self.gamma = nn.Parameter(torch.empty(d_model))
        self.beta = nn.Parameter(torch.empty(d_model))
        self.small = eps
        nn.init.normal_(self.gamma)
        nn.init.zeros_(self.beta)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        var, mu = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
        return (x - mu).div((var + self.small).sqrt()).mul(self.gamma)
