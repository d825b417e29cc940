# mistake: unbiased_variance
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps
        self.dof = d_model - 1

    def forward(self, x: Tensor) -> Tensor:
        centred = x - x.mean(dim=-1, keepdim=True)
        spread = torch.einsum("...d,...d->...", centred, centred).unsqueeze(-1) / self.dof
        return self.gamma * centred / torch.sqrt(spread + self.eps) + self.beta
