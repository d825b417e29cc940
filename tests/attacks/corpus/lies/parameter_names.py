"""Parameter names of controls, markup and a megabyte."""

import torch
from torch import nn


class Blend(nn.Module):
    def __init__(self, size):
        super().__init__()
        for name in ("weight", "<b>\x1b[2J", "x" * 10**6, "\ud800", ""):
            self._parameters[name] = nn.Parameter(torch.eye(size))

    def forward(self, x):
        return x
