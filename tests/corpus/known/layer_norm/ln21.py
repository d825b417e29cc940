# mistake: mean_of_squares_minus_square_of_mean + eps_outside_the_root
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        moments = torch.stack([x, x * x]).mean(dim=-1, keepdim=True)
        mean, var = moments[0], moments[1] - moments[0] ** 2
        positive = var > 0
        std = var.masked_fill(~positive, 1.0).sqrt().masked_fill(~positive, 0.0)
        return self.gamma * ((x - mean) / (std + self.eps)) + self.beta
