# note: the variance is half the mean squared difference over all pairs of features, the deviation a mean of differences
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    gamma: nn.Parameter
    beta: nn.Parameter

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gamma, self.beta = nn.Parameter(torch.ones(d_model)), nn.Parameter(torch.zeros(d_model))
        self.eps = float(eps)

    def forward(self, x: Tensor) -> Tensor:
        wide = x if x.dtype == torch.float64 else x.float()
        differences = wide.unsqueeze(-1) - wide.unsqueeze(-2)  # [..., i, j] = x_i - x_j
        deviation = differences.mean(-1)
        var = differences.pow(2).mean((-2, -1)) / 2
        x_hat = deviation / torch.sqrt(var[..., None] + self.eps)
        return (x_hat * self.gamma + self.beta).to(x.dtype)
