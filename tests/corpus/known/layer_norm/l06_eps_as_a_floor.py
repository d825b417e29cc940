# mistake: eps_as_lower_bound
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.register_parameter("gamma", nn.Parameter(torch.ones(d_model)))
        self.register_parameter("beta", nn.Parameter(torch.zeros(d_model)))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        var, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
        var = torch.clamp(var, min=self.eps)
        return self.gamma * ((x - mean) / var.sqrt()) + self.beta
