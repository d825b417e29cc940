# mistake: kept_averages_in_evaluation
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.momentum = 0.1
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.register_buffer("running_mean", torch.zeros(1), persistent=False)
        self.register_buffer("running_var", torch.ones(1), persistent=False)

    def _update(self, mean: Tensor, var: Tensor) -> None:
        self.running_mean.lerp_(mean.expand(1), self.momentum)
        self.running_var.lerp_(var.expand(1), self.momentum)

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            mean = x.mean(-1, keepdim=True)
            var = ((x - mean) ** 2).mean(-1, keepdim=True)
            if x.numel() > 0:
                self._update(mean.detach().mean(), var.detach().mean())
        else:
            mean, var = self.running_mean, self.running_var
        return self.gamma * ((x - mean) / torch.sqrt(var + self.eps)) + self.beta
