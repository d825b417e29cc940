# mistake: eps_outside_the_root
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    # adapted from "The Annotated ..." (my comments)
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean(-1, keepdim=True)
        diff = x - mean
        var = (diff**2).mean(-1, keepdim=True)
        # an infinitely steep root at 0 would make nan gradients
        safe = torch.where(var > 0, var, torch.ones_like(var))
        std = torch.where(var > 0, safe.sqrt(), torch.zeros_like(var))
        return self.gamma * (diff / (std + self.eps)) + self.beta
