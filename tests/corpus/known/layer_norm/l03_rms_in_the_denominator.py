# mistake: uncentred_variance
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gamma, self.beta = nn.Parameter(torch.ones(d_model)), nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean(dim=-1, keepdim=True)
        second = x.pow(2).mean(dim=-1, keepdim=True)
        out = (x - mean) * torch.rsqrt(second + self.eps)
        return out * self.gamma + self.beta
