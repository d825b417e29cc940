# mistake: divided_by_variance
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        mu = torch.mean(x, dim=-1, keepdim=True)
        precision = torch.reciprocal(torch.var(x, dim=-1, unbiased=False, keepdim=True) + self.eps)
        return torch.einsum("...d,d->...d", (x - mu) * precision, self.gamma) + self.beta
