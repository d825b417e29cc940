# mistake: scalar_gamma
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.tensor(1.0))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        d = x.size(-1)
        m = x.sum(-1, keepdim=True) / d
        v = (x - m).pow(2).sum(-1, keepdim=True) / d
        return self.gamma * ((x - m) / (v + self.eps).sqrt()) + self.beta
