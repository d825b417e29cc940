"""A module that invents parameters and gradients."""

import torch


class Blend(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.eye(size))

    def named_parameters(self, *args, **kwargs):
        return iter([("weight", self.weight)] * 10000)

    def state_dict(self, *args, **kwargs):
        return {"weight": Bomb()}

    def forward(self, x):
        return x * self.weight.sum()


class Bomb(dict):
    def __getattribute__(self, name):
        raise SystemExit(0)
