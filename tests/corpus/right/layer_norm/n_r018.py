# style: unusual
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    """Statistics in double precision, result in the dtype of x."""

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        wide = x.to(torch.float64)
        var, mean = torch.var_mean(wide, dim=-1, correction=0, keepdim=True)
        x_hat = (wide - mean) * torch.rsqrt(var + self.eps)
        out = torch.addcmul(self.beta.double(), x_hat, self.gamma.double())
        return out.to(x.dtype)
