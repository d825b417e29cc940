# right
from collections import OrderedDict
import math

import torch
from torch import nn


class LowRankLinear(nn.Module):
    """A frozen linear layer with a trained change of low rank."""

    def __init__(self, linear: nn.Linear, r: int, alpha: float, dropout: float = 0.0):
        super().__init__()
        if r < 1:
            raise ValueError(f"r is {r}, but must be at least 1")
        self.linear = linear
        for parameter in linear.parameters():
            parameter.requires_grad = False
        self.r, self.alpha = r, alpha
        self.A = nn.Parameter(linear.weight.new_empty(r, linear.in_features))
        self.B = nn.Parameter(linear.weight.new_zeros(linear.out_features, r))
        nn.init.kaiming_uniform_(self.A, a=math.sqrt(5))
        self.dropout = nn.Dropout(dropout)
        self.is_merged = False

    def delta(self):
        return torch.einsum("or,ri->oi", self.B, self.A) * (self.alpha / self.r)

    def forward(self, x):
        base = self.linear(x)
        if self.is_merged:
            return base
        low = torch.einsum("...i,ri->...r", self.dropout(x), self.A)
        change = torch.einsum("...r,or->...o", low, self.B)
        return base + change * (self.alpha / self.r)

    def merge(self):
        if self.is_merged:
            return
        with torch.no_grad():
            self.linear.weight.add_(self.delta())
        self.is_merged = True

    def unmerge(self):
        if not self.is_merged:
            return
        with torch.no_grad():
            self.linear.weight.sub_(self.delta())
        self.is_merged = False


def adapt(model, names, r, alpha):
    if r < 1:
        raise ValueError("r has to be at least 1")
    wanted = set(names)
    found = {}
    for full, module in model.named_modules():
        if isinstance(module, nn.Linear) and (full in wanted or full.split(".")[-1] in wanted):
            found[full] = module
    seen = set(found) | {full.split(".")[-1] for full in found}
    missing = wanted - seen
    if missing:
        raise ValueError(f"no linear layer is called {sorted(missing)}")
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    for full, layer in found.items():
        parent, _, child = full.rpartition(".")
        setattr(model.get_submodule(parent), child, LowRankLinear(layer, r, alpha))
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def make_model(d_in: int, d_hidden: int, d_out: int) -> torch.nn.Sequential:
    """Return a model with the linear layers first.up, first.down, second.up, second.down, head."""

    def part() -> torch.nn.Sequential:
        up, down = torch.nn.Linear(d_in, d_hidden), torch.nn.Linear(d_hidden, d_in)
        return torch.nn.Sequential(OrderedDict(up=up, act=torch.nn.PReLU(), down=down))

    head = torch.nn.Linear(d_in, d_out)
    return torch.nn.Sequential(OrderedDict(first=part(), second=part(), head=head))
