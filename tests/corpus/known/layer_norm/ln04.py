# mistake: eps_argument_ignored
import torch
from torch import Tensor, nn


def standardise(t: Tensor, eps: float = 1e-5) -> Tensor:
    var, mean = torch.var_mean(t, dim=-1, unbiased=False, keepdim=True)
    return (t - mean) * (var + eps).rsqrt()


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return standardise(x).mul(self.gamma).add(self.beta)
