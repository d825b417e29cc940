"""Answers with: parameters of nan, and infinite buffers."""

import torch
from torch import nn


class Blend(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.full((size, size), float("nan")))
        self.register_buffer("far", torch.tensor([1e308, float("inf"), -0.0, 5e-324]))

    def forward(self, x):
        return x @ self.weight * self.far[0] * self.far[0]
