# exercise: layer_norm
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    """Moves the features to the front, so that no keepdim is needed."""

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        f = x.movedim(-1, 0)
        f = f - f.mean(0)
        f = f / torch.sqrt(f.pow(2).mean(0) + self.eps)
        return f.movedim(0, -1) * self.gamma + self.beta
