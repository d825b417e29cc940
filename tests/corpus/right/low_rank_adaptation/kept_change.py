# right: The change that was merged is kept and taken out again; adapt goes down the children by recursion.
from collections import OrderedDict

import torch
from torch import Tensor, nn


class LowRankLinear(nn.Module):
    def __init__(self, linear: nn.Linear, r: int, alpha: float, dropout: float = 0.0) -> None:
        super().__init__()
        if not r >= 1:
            raise ValueError(f"rank {r}")
        self.linear = linear.requires_grad_(False)
        d_out, d_in = linear.weight.shape
        like = {"dtype": linear.weight.dtype, "device": linear.weight.device}
        self.A = nn.Parameter(torch.randn(r, d_in, **like) / d_in**0.5)
        self.B = nn.Parameter(torch.zeros(d_out, r, **like))
        self.factor, self.rate = alpha / r, dropout
        self.inside: Tensor | None = None  # what was added to the weight

    def forward(self, x: Tensor) -> Tensor:
        out = self.linear(x)
        if self.inside is not None:
            return out
        dropped = nn.functional.dropout(x, self.rate, self.training)
        return out + self.factor * torch.einsum("...i,ri,or->...o", dropped, self.A, self.B)

    @torch.no_grad()
    def merge(self) -> None:
        if self.inside is None:
            self.inside = self.factor * (self.B @ self.A)
            self.linear.weight.add_(self.inside)

    @torch.no_grad()
    def unmerge(self) -> None:
        if self.inside is not None:
            self.linear.weight.sub_(self.inside.to(self.linear.weight))
            self.inside = None


def adapt(model: nn.Module, names: list[str], r: int, alpha: float) -> int:
    unused = set(names)
    model.requires_grad_(False)

    def visit(module: nn.Module, path: str) -> None:
        for child_name, child in list(module.named_children()):
            full = path + child_name
            hits = {n for n in names if f".{full}".endswith(f".{n}")} if isinstance(child, nn.Linear) else ()
            if hits:
                unused.difference_update(hits)
                module.add_module(child_name, LowRankLinear(child, r, alpha))
            else:
                visit(child, full + ".")

    visit(model, "")
    if unused:
        raise ValueError(f"no linear layer for {sorted(unused)}")
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def make_model(d_in: int, d_hidden: int, d_out: int) -> nn.Sequential:
    """Return a model with the linear layers first.up, first.down, second.up, second.down, head."""

    def part() -> nn.Sequential:
        up, down = nn.Linear(d_in, d_hidden), nn.Linear(d_hidden, d_in)
        return nn.Sequential(OrderedDict(up=up, act=nn.PReLU(), down=down))

    head = nn.Linear(d_in, d_out)
    return nn.Sequential(OrderedDict(first=part(), second=part(), head=head))
