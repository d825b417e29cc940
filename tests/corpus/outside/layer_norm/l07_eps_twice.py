# exercise: layer_norm
# mistake: adds eps both inside the root and to the root
# true: the output is a little too small; with eps 0.1 clearly so
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        mean = torch.mean(x, dim=-1, keepdim=True)
        var = torch.var(x, dim=-1, keepdim=True, unbiased=False)
        std = torch.sqrt(var + self.eps)
        x_hat = (x - mean) / (std + self.eps)
        return self.gamma * x_hat + self.beta
