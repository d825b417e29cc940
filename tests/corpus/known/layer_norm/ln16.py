# mistake: eps_argument_ignored + unbiased_variance
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Tensor) -> Tensor:
        mean, var = x.mean(-1, True), torch.var(x, -1, keepdim=True)
        root = torch.sqrt(1e-6 + var)
        return torch.addcmul(self.beta, self.gamma, (x - mean) / root)
