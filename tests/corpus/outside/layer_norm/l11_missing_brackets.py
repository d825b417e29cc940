# exercise: layer_norm
# mistake: writes x - mean / std without brackets, so only the mean is divided
# true: the output is x minus a small offset: the scale of the token is not changed
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        m = x.mean(dim=-1, keepdim=True)
        s = torch.sqrt(((x - m) ** 2).mean(dim=-1, keepdim=True) + self.eps)
        x_hat = x - m / s
        return self.gamma * x_hat + self.beta
