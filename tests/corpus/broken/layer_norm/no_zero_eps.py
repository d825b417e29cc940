# broken: "LayerNorm(d_model, eps=1e-5), x_hat = (x - mean) / sqrt(var + eps)": eps=0 is taken for a missing argument and replaced by 1e-5
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.d_model = d_model
        self.eps = eps or 1e-5
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean(dim=-1, keepdim=True)
        centred = x - mean
        var = (centred * centred).mean(dim=-1, keepdim=True)
        x_hat = centred / torch.sqrt(var + self.eps)
        return self.gamma * x_hat + self.beta
