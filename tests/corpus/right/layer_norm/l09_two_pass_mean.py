# exercise: layer_norm
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        # subtract one feature first: now the numbers are small, then subtract the mean of the rest
        shifted = x - x[..., :1].detach()
        shifted = shifted - shifted.mean(dim=-1, keepdim=True)
        # after the shift mean(x^2) - mean^2 is harmless, because the mean is 0
        second = (shifted**2).mean(-1, keepdim=True)
        return self.beta + self.gamma * shifted / (second + self.eps).sqrt()
