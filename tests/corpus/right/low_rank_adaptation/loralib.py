# right: Microsoft's loralib: self.scaling, a merged flag, T through transpose, and setattr on the parent module.
import math
from collections import OrderedDict

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class LowRankLinear(nn.Module):
    def __init__(self, linear: nn.Linear, r: int, alpha: float, dropout: float = 0.0) -> None:
        super().__init__()
        if r < 1:
            raise ValueError("r has to be at least 1")
        self.linear = linear
        for p in self.linear.parameters():
            p.requires_grad = False
        self.A = nn.Parameter(linear.weight.new_zeros((r, linear.in_features)))
        self.B = nn.Parameter(linear.weight.new_zeros((linear.out_features, r)))
        nn.init.kaiming_uniform_(self.A, a=math.sqrt(5))
        self.scaling = alpha / r
        self.lora_dropout = nn.Dropout(p=dropout) if dropout > 0.0 else lambda x: x
        self.merged = False

    def forward(self, x: Tensor) -> Tensor:
        result = F.linear(x, self.linear.weight, self.linear.bias)
        if not self.merged:
            result = result + (self.lora_dropout(x) @ self.A.transpose(0, 1) @ self.B.transpose(0, 1)) * self.scaling
        return result

    @torch.no_grad()
    def merge(self) -> None:
        if not self.merged:
            self.linear.weight.data += self.B @ self.A * self.scaling
            self.merged = True

    @torch.no_grad()
    def unmerge(self) -> None:
        if self.merged:
            self.linear.weight.data -= self.B @ self.A * self.scaling
            self.merged = False


def adapt(model: nn.Module, names: list[str], r: int, alpha: float) -> int:
    for param in model.parameters():
        param.requires_grad = False
    found = {}
    for target in names:
        matches = {
            name: module
            for name, module in model.named_modules()
            if isinstance(module, nn.Linear) and (name == target or name.endswith("." + target))
        }
        if not matches:
            raise ValueError(f"no linear layer is named {target}")
        found.update(matches)
    for name, module in found.items():
        parent, _, child = name.rpartition(".")
        setattr(model.get_submodule(parent), child, LowRankLinear(module, r, alpha))
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def make_model(d_in: int, d_hidden: int, d_out: int) -> nn.Sequential:
    """Return a model with the linear layers first.up, first.down, second.up, second.down, head."""

    def part() -> nn.Sequential:
        up, down = nn.Linear(d_in, d_hidden), nn.Linear(d_hidden, d_in)
        return nn.Sequential(OrderedDict(up=up, act=nn.PReLU(), down=down))

    head = nn.Linear(d_in, d_out)
    return nn.Sequential(OrderedDict(first=part(), second=part(), head=head))
