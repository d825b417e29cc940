# exercise: layer_norm
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    """Mean and variance as sums over d_model, as in the formula."""

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.d = d_model
        self.register_parameter("gamma", nn.Parameter(torch.ones(d_model)))
        self.register_parameter("beta", nn.Parameter(torch.zeros(d_model)))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        centred = x - x.sum(-1, keepdim=True) / self.d
        var = torch.einsum("...i,...i->...", centred, centred).unsqueeze(-1) / self.d
        return self.gamma * centred / (var + self.eps) ** 0.5 + self.beta
