# mistake: eps_as_lower_bound
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        centered = x - x.mean(-1, keepdim=True)
        variance = centered.square().mean(-1, keepdim=True)
        scale = variance.clamp(min=self.eps).sqrt()
        return centered / scale * self.gamma + self.beta
