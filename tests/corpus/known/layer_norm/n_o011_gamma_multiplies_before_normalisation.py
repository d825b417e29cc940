# mistake: gamma_before_normalising
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    """Normalise each token's features, then scale by gamma and shift by beta."""

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """Map x (..., d_model) to the same shape and dtype."""
        scaled = self.gamma * x
        mean = scaled.mean(dim=-1, keepdim=True)
        var = ((scaled - mean) ** 2).mean(dim=-1, keepdim=True)
        x_hat = (scaled - mean) / torch.sqrt(var + self.eps)
        return x_hat + self.beta
