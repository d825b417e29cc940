# mistake: last_two_axes
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    """Normalise each token's features, then scale by gamma and shift by beta."""

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Tensor) -> Tensor:
        dims = tuple(range(1, x.dim()))
        mean = x.mean(dim=dims, keepdim=True)
        var = x.var(dim=dims, keepdim=True, unbiased=False)
        normed = (x - mean) / (var + self.eps).sqrt()
        return normed * self.gamma + self.beta
