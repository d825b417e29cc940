# mistake: uncentred_variance
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gamma, self.beta = nn.Parameter(torch.ones(d_model)), nn.Parameter(torch.zeros(d_model))
        self.d_model, self.eps = d_model, eps

    def forward(self, x: Tensor) -> Tensor:
        m = x.sum(-1, keepdim=True) / self.d_model
        v = x.pow(2).sum(-1, keepdim=True) / self.d_model
        return (x - m) * (v + self.eps).pow(-0.5) * self.gamma + self.beta
