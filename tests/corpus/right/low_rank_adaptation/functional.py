# right
from collections import OrderedDict
import torch
from torch import nn
from torch.nn import functional as F


class LowRankLinear(nn.Module):
    def __init__(self, linear, r, alpha, dropout=0.0):
        super().__init__()
        assert r >= 1, "r must be positive"
        linear.requires_grad_(False)
        self.linear = linear
        self.scaling = float(alpha) / r
        self.A = nn.Parameter(torch.rand_like(linear.weight[:1].expand(r, -1)) - 0.5)
        self.B = nn.Parameter(torch.zeros_like(linear.weight[:, :1]).repeat(1, r))
        self.drop = nn.Dropout(p=dropout)
        self.register_buffer("merged", torch.tensor(False), persistent=False)

    def forward(self, x):
        out = self.linear(x)
        if not self.merged:
            out = out + F.linear(F.linear(self.drop(x), self.A), self.B) * self.scaling
        return out

    def merge(self):
        if not self.merged:
            self.linear.weight.data += self.scaling * (self.B @ self.A).detach()
            self.merged = torch.tensor(True)
        return self

    def unmerge(self):
        if self.merged:
            self.linear.weight.data -= self.scaling * (self.B @ self.A).detach()
            self.merged = torch.tensor(False)
        return self


def adapt(model, names, r, alpha):
    if r < 1:
        raise ValueError("r must be positive")
    modules = dict(model.named_modules())
    chosen = [
        path
        for path, module in modules.items()
        if isinstance(module, nn.Linear) and any(path == n or path.endswith("." + n) for n in names)
    ]
    for n in names:
        if not any(path == n or path.endswith("." + n) for path in chosen):
            raise ValueError(f"no linear layer {n!r}")
    model.requires_grad_(False)
    count = 0
    for path in chosen:
        *above, last = path.split(".")
        layer = LowRankLinear(modules[path], r, alpha)
        setattr(modules[".".join(above)], last, layer)
        count += layer.A.numel() + layer.B.numel()
    return count


def make_model(d_in: int, d_hidden: int, d_out: int) -> torch.nn.Sequential:
    """Return a model with the linear layers first.up, first.down, second.up, second.down, head."""

    def part() -> torch.nn.Sequential:
        up, down = torch.nn.Linear(d_in, d_hidden), torch.nn.Linear(d_hidden, d_in)
        return torch.nn.Sequential(OrderedDict(up=up, act=torch.nn.PReLU(), down=down))

    head = torch.nn.Linear(d_in, d_out)
    return torch.nn.Sequential(OrderedDict(first=part(), second=part(), head=head))
