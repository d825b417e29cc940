# mistake: eps_as_lower_bound
import torch
from torch import nn


class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        var = x.var(-1, keepdim=True, unbiased=False)
        # avoid division by zero
        x_hat = (x - mean) / torch.sqrt(torch.clamp(var, min=self.eps))
        return self.gamma * x_hat + self.beta
