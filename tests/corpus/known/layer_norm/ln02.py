# mistake: eps_outside_the_root
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    """Layer norm, as in the annotated paper but with the biased deviation."""

    def __init__(self, features, eps=1e-5):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(features))
        self.beta = nn.Parameter(torch.zeros(features))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean(-1, keepdim=True)
        centred = x - mean
        var = centred.square().mean(-1, keepdim=True)
        # the root of 0 has an infinite slope: step round it
        flat = var == 0
        std = torch.where(flat, torch.zeros_like(var), torch.where(flat, torch.ones_like(var), var).sqrt())
        return self.gamma * (x - mean) / (std + self.eps) + self.beta
