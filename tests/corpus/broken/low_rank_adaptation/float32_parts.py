# broken: A and B are float32 whatever the dtype of the linear layer
from collections import OrderedDict
import torch
import torch.nn.functional as F
from torch import nn


class LowRankLinear(nn.Module):
    """The change is the sum of r outer products, written out one by one."""

    def __init__(self, linear, r, alpha, dropout=0.0):
        super().__init__()
        if r < 1:
            raise ValueError("rank")
        self.linear = linear
        self.linear.weight.requires_grad_(False)
        if self.linear.bias is not None:
            self.linear.bias.requires_grad_(False)
        d_out, d_in = linear.weight.shape
        self.rank = r
        self.alpha = alpha
        self.p = dropout
        self.A = nn.Parameter(torch.empty(r, d_in).normal_(std=d_in**-0.5))
        self.B = nn.Parameter(torch.zeros(d_out, r))
        self.original = None

    def forward(self, x):
        result = self.linear(x)
        if self.original is not None:
            return result
        x = F.dropout(x, self.p, self.training)
        for i in range(self.rank):
            coefficient = (x * self.A[i]).sum(-1, keepdim=True)
            result = result + coefficient * self.B[:, i] * self.alpha / self.rank
        return result

    def merge(self):
        if self.original is None:
            self.original = self.linear.weight.detach().clone()
            change = torch.zeros_like(self.original)
            for i in range(self.rank):
                change += torch.outer(self.B[:, i].detach(), self.A[i].detach())
            self.linear.weight.data = self.original + change * self.alpha / self.rank

    def unmerge(self):
        if self.original is not None:
            self.linear.weight.data = self.original
            self.original = None


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
