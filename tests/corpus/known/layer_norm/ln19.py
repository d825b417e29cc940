# mistake: token_axis + unbiased_variance
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5, axis: int = -2) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps
        self.axis = axis

    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean(dim=self.axis, keepdim=True)
        dev = x - mean
        count = max(x.shape[self.axis] - 1, 1)
        var = dev.square().sum(dim=self.axis, keepdim=True).div(count)
        return dev * (var + self.eps).rsqrt() * self.gamma + self.beta
