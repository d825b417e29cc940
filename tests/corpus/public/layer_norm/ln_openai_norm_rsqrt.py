# exercise: layer_norm
# deviates: nothing in values; imports numpy at the top (unused)
"""norm() of the TensorFlow GPT-2 code, carried over to torch."""
import numpy as np  # noqa: F401
import torch
from torch import nn


def norm(x, g, b, *, axis=-1, epsilon=1e-5):
    """Normalize to mean = 0, std = 1, then do a diagonal affine transform."""
    u = torch.mean(x, dim=axis, keepdim=True)
    s = torch.mean(torch.square(x - u), dim=axis, keepdim=True)
    x = (x - u) * torch.rsqrt(s + epsilon)
    x = x * g + b
    return x


class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.register_parameter("gamma", nn.Parameter(torch.empty(d_model)))
        self.register_parameter("beta", nn.Parameter(torch.empty(d_model)))
        self.epsilon = eps
        self.reset_parameters()

    def reset_parameters(self):
        nn.init.ones_(self.gamma)
        nn.init.zeros_(self.beta)

    def forward(self, x):
        return norm(x, self.gamma, self.beta, epsilon=self.epsilon)

    def extra_repr(self):
        return f"{self.gamma.numel()}, eps={self.epsilon}"
