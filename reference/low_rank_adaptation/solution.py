"""Reference solution: low-rank adaptation of linear layers."""

from collections import OrderedDict

import torch
from torch import Tensor, nn


class LowRankLinear(nn.Module):
    """A frozen linear layer, and a trained change of its weight of rank r at most."""

    def __init__(self, linear: nn.Linear, r: int, alpha: float, dropout: float = 0.0) -> None:
        super().__init__()
        # --- solution
        if r < 1:
            raise ValueError(f"r is {r}, and must be at least 1")
        self.linear = linear.requires_grad_(False)
        weight = linear.weight  # (d_out, d_in)
        rows = torch.randn(r, weight.shape[1]) * weight.shape[1] ** -0.5  # (r, d_in)
        self.A = nn.Parameter(rows.to(weight))  # (r, d_in)
        self.B = nn.Parameter(weight.new_zeros(weight.shape[0], r))  # (d_out, r)
        self.scale = alpha / r
        self.dropout = nn.Dropout(dropout)
        self.is_merged = False
        # --- end

    def forward(self, x: Tensor) -> Tensor:
        """Map x (..., d_in) to (..., d_out)."""
        # --- solution
        output = self.linear(x)  # (..., d_out)
        if self.is_merged:
            return output
        low = self.dropout(x) @ self.A.T  # (..., r)
        change = self.scale * low @ self.B.T  # (..., d_out)
        return output + change  # (..., d_out)
        # --- end

    @torch.no_grad()
    def merge(self) -> None:
        """Add the change to the weight, unless it is in there."""
        # --- solution
        if not self.is_merged:
            self.linear.weight += self.scale * self.B @ self.A  # (d_out, d_in)
        self.is_merged = True
        # --- end

    @torch.no_grad()
    def unmerge(self) -> None:
        """Take the change out of the weight, if it is in there."""
        # --- solution
        if self.is_merged:
            self.linear.weight -= self.scale * self.B @ self.A  # (d_out, d_in)
        self.is_merged = False
        # --- end


def adapt(model: nn.Module, names: list[str], r: int, alpha: float) -> int:
    """Put a LowRankLinear around each linear layer with one of the names, and freeze the rest.

    Returns how many numbers are trained. Raises ValueError if a name stands for no linear layer.
    """
    # --- solution
    layers = {n: layer for n, layer in model.named_modules() if isinstance(layer, nn.Linear)}
    chosen = set()
    for name in names:
        found = {each for each in layers if f".{each}".endswith(f".{name}")}
        if not found:
            raise ValueError(f"there is no linear layer {name!r}; there are: {', '.join(layers)}")
        chosen |= found
    model.requires_grad_(False)
    for name in chosen:
        parent, _, child = name.rpartition(".")
        setattr(model.get_submodule(parent), child, LowRankLinear(layers[name], r, alpha))
    return sum(p.numel() for p in model.parameters() if p.requires_grad)
    # --- end


def make_model(d_in: int, d_hidden: int, d_out: int) -> nn.Sequential:
    """Return a model with the linear layers first.up, first.down, second.up, second.down, head."""

    def part() -> nn.Sequential:
        up, down = nn.Linear(d_in, d_hidden), nn.Linear(d_hidden, d_in)
        return nn.Sequential(OrderedDict(up=up, act=nn.PReLU(), down=down))

    head = nn.Linear(d_in, d_out)
    return nn.Sequential(OrderedDict(first=part(), second=part(), head=head))
