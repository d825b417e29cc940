import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.register_parameter("beta", nn.Parameter(torch.zeros(d_model)))

    def forward(self, x: Tensor) -> Tensor:
        assert x.shape[-1] == self.gamma.shape[0], "last axis must be d_model"
        half = x.dtype in (torch.bfloat16, torch.float16)
        y = x.float() if half else x
        var, mean = torch.var_mean(y, dim=-1, correction=0, keepdim=True)
        y = (y - mean) * torch.rsqrt(var + self.eps)
        return (self.gamma * y + self.beta).to(x.dtype)
