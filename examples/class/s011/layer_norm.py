import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        mu = x.mean(-1).unsqueeze(-1)
        sigma = torch.sqrt(x.var(-1, correction=0) + self.eps).unsqueeze(-1)
        return (x - mu) / sigma * self.gamma + self.beta
