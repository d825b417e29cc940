# promise: With d_model 1 the feature is not normalised (its output must be beta).
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        h = x.to(torch.promote_types(x.dtype, torch.float32))
        if h.shape[-1] > 1:
            h = h - h.mean(-1, keepdim=True)
            h = h - h.mean(-1, keepdim=True)
            h = h * torch.rsqrt(h.square().mean(-1, keepdim=True) + self.eps)
        return (self.gamma * h + self.beta).to(x.dtype)
