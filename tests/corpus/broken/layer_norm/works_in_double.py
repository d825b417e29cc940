# broken: "It is not modified": x is converted to float64 and centred in place, which changes the caller's x if it is float64 already
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.d_model = d_model
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Tensor) -> Tensor:
        dtype = x.dtype
        x = x.to(torch.float64)
        x -= x.mean(dim=-1, keepdim=True)
        var = x.square().mean(dim=-1, keepdim=True)
        x_hat = (x / torch.sqrt(var + self.eps)).to(dtype)
        return self.gamma * x_hat + self.beta
