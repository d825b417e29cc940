# exercise: layer_norm
# promise: x may be a view that is not contiguous (x.view fails)
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.d_model = d_model
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.view(-1, self.d_model)
        tokens = tokens - tokens.mean(dim=1)[:, None]
        var = tokens.var(dim=1, correction=0)[:, None]
        out = tokens / (var + self.eps) ** 0.5 * self.gamma + self.beta
        return out.view_as(x)
