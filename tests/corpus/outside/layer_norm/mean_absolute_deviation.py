# mistake: not in the catalogue: mean absolute deviation in place of the standard deviation
import torch
import torch.nn as nn


class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.n_features = d_model
        self.e = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        avg = x.sum(-1, keepdim=True) / self.n_features
        delta = x - avg
        mad = delta.abs().sum(-1, keepdim=True) / self.n_features
        xhat = delta / (mad + self.e)
        return xhat * self.gamma + self.beta
