# exercise: layer_norm
from typing import Callable, Dict, Union

import torch
import torch.nn as nn


class HookPoint(nn.Module):
    """A do-nothing module, so that activations can be watched with register_forward_hook."""

    def __init__(self):
        super().__init__()
        self.ctx: Dict = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


class LayerNormPre(nn.Module):
    """Centre and normalise, without the learned part."""

    def __init__(self, eps: float):
        super().__init__()
        self.eps = eps
        self.hook_scale = HookPoint()       # [batch, pos, 1]
        self.hook_normalized = HookPoint()  # [batch, pos, length]

    def forward(self, x):
        dtype = x.dtype
        if dtype not in (torch.float32, torch.float64):
            x = x.to(torch.float32)
        x = x - x.mean(-1, keepdim=True)
        scale: Union[torch.Tensor, Callable] = self.hook_scale((x.pow(2).mean(-1, keepdim=True) + self.eps).sqrt())
        return self.hook_normalized(x / scale).to(dtype)


class LayerNorm(LayerNormPre):
    def __init__(self, d_model: int, eps: float = 1e-5):
        super().__init__(eps)
        self.length = d_model
        self.gamma = nn.Parameter(torch.ones(self.length))
        self.beta = nn.Parameter(torch.zeros(self.length))

    def forward(self, x):
        return super().forward(x) * self.gamma + self.beta
