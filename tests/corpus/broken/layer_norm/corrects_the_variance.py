# broken: "A token whose features are all equal has variance 0. Its output is beta (not nan)": with d_model 1 the corrected unbiased variance is nan * 0, so the output is nan
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.d_model = d_model
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Tensor) -> Tensor:
        d_model = self.d_model
        mean = x.mean(dim=-1, keepdim=True)
        var = x.var(dim=-1, keepdim=True) * (d_model - 1) / d_model
        x_hat = (x - mean) / torch.sqrt(var + self.eps)
        return self.gamma * x_hat + self.beta
