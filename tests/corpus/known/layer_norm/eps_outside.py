# mistake: eps_outside_the_root
# eps is added to the standard deviation, outside of the square root
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    """Annotated style, with a and b renamed."""

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        var = centred.square().mean(-1, keepdim=True)
        # the root has no finite slope at 0
        flat = var == 0
        std = torch.where(flat, 0.0, torch.where(flat, 1.0, var).sqrt()).to(x.dtype)
        return self.gamma * centred / (std + self.eps) + self.beta
