# mistake: square_for_root
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    """Normalise each token's features, then scale by gamma and shift by beta."""

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))  # (d_model,)
        self.beta = nn.Parameter(torch.zeros(d_model))  # (d_model,)

    def forward(self, x: Tensor) -> Tensor:
        """Map x (..., d_model) to the same shape and dtype."""
        mean = x.mean(dim=-1, keepdim=True)  # (..., 1)
        var = x.var(dim=-1, keepdim=True, correction=0)  # (..., 1)
        x_hat = (x - mean) / (var + self.eps) ** 2  # (..., d_model)
        return self.gamma * x_hat + self.beta  # (..., d_model)
