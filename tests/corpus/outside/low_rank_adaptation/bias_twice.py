# mistake: not in the catalogue: the bias is added twice
from collections import OrderedDict
import torch
from torch import nn


class LowRankLinear(nn.Module):
    def __init__(self, linear, r, alpha, dropout=0.0):
        super().__init__()
        if r < 1:
            raise ValueError("r < 1")
        self.linear, self.scale, self.merged = linear.requires_grad_(False), alpha / r, False
        w = linear.weight
        self.A = nn.Parameter(torch.randn(r, w.shape[1], dtype=w.dtype, device=w.device) / r)
        self.B = nn.Parameter(torch.zeros(w.shape[0], r, dtype=w.dtype, device=w.device))
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        y = self.linear(x)
        return y if self.merged else y + self.scale * (self.drop(x) @ self.A.T @ self.B.T)

    @torch.no_grad()
    def _shift(self, merged):
        if merged != self.merged:
            self.linear.weight += (1 if merged else -1) * self.scale * self.B @ self.A
            self.merged = merged

    def merge(self):
        self._shift(True)

    def unmerge(self):
        self._shift(False)


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


class LowRankLinear(LowRankLinear):
    def forward(self, x):
        return super().forward(x) + self.linear.bias
