# exercise: layer_norm
# promise: a token whose features are all equal: gradients stay finite (std of a constant has an infinite slope)
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean(dim=-1, keepdim=True)
        sigma = torch.sqrt(((x - mean) ** 2).mean(dim=-1, keepdim=True))
        return self.gamma * (x - mean) / torch.sqrt(sigma * sigma + self.eps) + self.beta
