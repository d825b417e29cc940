import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    gamma: nn.Parameter
    beta: nn.Parameter

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.register_parameter("gamma", nn.Parameter(torch.ones(d_model)))
        self.register_parameter("beta", nn.Parameter(torch.zeros(d_model)))

    def forward(self, x: Tensor) -> Tensor:
        var, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
        x_hat = (x - mean) * torch.rsqrt(var + self.eps)
        return torch.addcmul(self.beta, self.gamma, x_hat)
