# right: rasbt's LoRALayer form with x @ A^T @ B^T, a scale that multiplies B, and merged weights set with copy_.
from collections import OrderedDict

import torch
from torch import nn


class LowRankLinear(nn.Module):
    def __init__(self, linear, r, alpha, dropout=0.0):
        super().__init__()
        if r <= 0:
            raise ValueError("the rank has to be positive")
        self.linear = linear
        self.linear.weight.requires_grad_(False)
        if self.linear.bias is not None:
            self.linear.bias.requires_grad_(False)
        std_dev = 1 / torch.sqrt(torch.tensor(r).float()).item()
        weight = linear.weight
        self.A = nn.Parameter(torch.empty(r, weight.shape[1]).normal_(std=std_dev).to(weight))
        self.B = nn.Parameter(torch.zeros(weight.shape[0], r).to(weight))
        self.alpha, self.rank = alpha, r
        self.dropout = nn.Dropout(dropout)
        self.is_merged = False

    def change(self):
        return (self.alpha / self.rank) * self.B @ self.A

    def forward(self, x):
        if self.is_merged:
            return self.linear(x)
        x_low = self.alpha / self.rank * (self.dropout(x) @ self.A.T @ self.B.T)
        return self.linear(x) + x_low

    @torch.no_grad()
    def merge(self):
        if self.is_merged:
            return
        self.linear.weight.copy_(self.linear.weight + self.change())
        self.is_merged = True

    @torch.no_grad()
    def unmerge(self):
        if not self.is_merged:
            return
        self.linear.weight.copy_(self.linear.weight - self.change())
        self.is_merged = False


def adapt(model, names, r, alpha):
    linears = {n: m for n, m in model.named_modules() if isinstance(m, nn.Linear)}
    chosen = []
    for wanted in names:
        hits = [n for n in linears if n.split(".")[-len(wanted.split(".")):] == wanted.split(".")]
        if len(hits) == 0:
            raise ValueError(wanted)
        chosen += [n for n in hits if n not in chosen]
    for param in model.parameters():
        param.requires_grad = False
    for name in chosen:
        *path, last = name.split(".")
        parent = model
        for step in path:
            parent = getattr(parent, step)
        setattr(parent, last, LowRankLinear(linears[name], r, alpha))
    total = 0
    for param in model.parameters():
        total += param.numel() * int(param.requires_grad)
    return total


def make_model(d_in: int, d_hidden: int, d_out: int) -> nn.Sequential:
    """Return a model with the linear layers first.up, first.down, second.up, second.down, head."""

    def part() -> nn.Sequential:
        up, down = nn.Linear(d_in, d_hidden), nn.Linear(d_hidden, d_in)
        return nn.Sequential(OrderedDict(up=up, act=nn.PReLU(), down=down))

    head = nn.Linear(d_in, d_out)
    return nn.Sequential(OrderedDict(first=part(), second=part(), head=head))
