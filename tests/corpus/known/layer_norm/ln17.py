# mistake: eps_outside_the_root + buffers_for_parameters
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.register_buffer("gamma", torch.ones(d_model))
        self.register_buffer("beta", torch.zeros(d_model))

    def forward(self, x: Tensor) -> Tensor:
        c = x - x.mean(dim=-1, keepdim=True)
        # norm / sqrt(d) is the standard deviation, and its gradient at 0 is 0
        std = torch.linalg.vector_norm(c, dim=-1, keepdim=True) / x.shape[-1] ** 0.5
        return self.gamma * c / (std + self.eps) + self.beta
