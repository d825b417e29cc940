# mistake: kept_averages_in_evaluation
# true: right in training; in eval mode a token's own mean is not removed
import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps
        self.momentum = 0.1
        self.running_mean = 0.0
        self.running_var = 1.0

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            mean = x.mean(dim=-1, keepdim=True)
            var = x.var(dim=-1, keepdim=True, unbiased=False)
            self.running_mean += self.momentum * (mean.mean().item() - self.running_mean)
            self.running_var += self.momentum * (var.mean().item() - self.running_var)
        else:
            mean, var = self.running_mean, self.running_var
        x_hat = (x - mean) / (var + self.eps) ** 0.5
        return self.gamma * x_hat + self.beta
