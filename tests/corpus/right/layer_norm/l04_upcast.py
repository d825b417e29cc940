# exercise: layer_norm
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.variance_epsilon = eps

    def forward(self, x: Tensor) -> Tensor:
        input_dtype = x.dtype
        # statistics in full precision
        h = x.to(torch.promote_types(input_dtype, torch.float32))
        h = h - h.mean(-1, keepdim=True)
        variance = h.pow(2).mean(-1, keepdim=True)
        h = h * torch.rsqrt(variance + self.variance_epsilon)
        return self.gamma * h.to(input_dtype) + self.beta
