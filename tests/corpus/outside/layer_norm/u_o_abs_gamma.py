# mistake: not in the catalogue: the absolute value of gamma scales the features, so a negative factor becomes positive
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        c = x.double()
        c = c - c.mean(-1, keepdim=True)
        inverse = (self.gamma.double().square() / (c.square().mean(-1, keepdim=True) + self.eps)).sqrt()
        return (c * inverse + self.beta).to(x.dtype)
