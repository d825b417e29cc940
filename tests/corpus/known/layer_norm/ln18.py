# mistake: scalar_gamma + eps_argument_ignored
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    EPS = 1e-5

    def __init__(self, d_model: int, eps: float = EPS) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(1))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean(dim=-1, keepdim=True)
        var = torch.mean((x - mean) ** 2, dim=-1, keepdim=True)
        norm = (x - mean) / torch.sqrt(var + self.EPS)
        return self.gamma * norm + self.beta
