# exercise: layer_norm
# mistake: gamma_counts_from_one
# true: a fresh layer gives twice the expected output
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def _norm(self, x):
        c = x - x.mean(dim=-1, keepdim=True)
        v = (c * c).mean(dim=-1, keepdim=True)
        return c * (v + self.eps).rsqrt()

    def forward(self, x: Tensor) -> Tensor:
        return self._norm(x) * (1 + self.gamma) + self.beta
