# mistake: mean_of_squares_minus_square_of_mean
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.d_model = d_model
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Tensor) -> Tensor:
        # both sums in one pass over x
        s1 = x.sum(dim=-1, keepdim=True)
        s2 = torch.linalg.vector_norm(x, dim=-1, keepdim=True) ** 2
        mean = s1 / self.d_model
        var = (s2 / self.d_model - mean * mean).clamp_min(0.0)
        return (x - mean) * torch.rsqrt(var + self.eps) * self.gamma + self.beta
