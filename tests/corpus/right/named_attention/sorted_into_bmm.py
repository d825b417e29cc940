# right: every product is one bmm: axes are sorted into shared, own and summed ones and flattened
import math

import torch
from torch import Tensor

Named = tuple[Tensor, tuple[str, ...]]  # a tensor and the name of each of its axes, in order


def rename(x: Named, old: str, new: str) -> Named:
    """Return `x` with its axis `old` called `new`."""
    tensor, names = x
    return tensor, tuple(new if name == old else name for name in names)


class Axes:
    """The names and sizes of a tensor, which refuses doubled names."""

    def __init__(self, x: Named) -> None:
        self.sizes: dict[str, int] = {}
        for name, size in zip(x[1], x[0].shape, strict=True):
            if name in self.sizes:
                raise ValueError(f"doubled: {name}")
            self.sizes[name] = size

    def number(self, names: list[str]) -> int:
        return math.prod(self.sizes[name] for name in names)


def ordered(x: Named, *groups: list[str]) -> Tensor:
    tensor, names = x
    axes = Axes(x)
    tensor = tensor.permute([names.index(name) for group in groups for name in group])
    return tensor.reshape([axes.number(group) for group in groups])


def contract(left: Named, right: Named, *over: str) -> Named:
    a, b = Axes(left), Axes(right)
    for name in over:
        if name not in a.sizes or name not in b.sizes:
            raise ValueError(f"missing: {name}")
    for name in a.sizes:
        if b.sizes.get(name, a.sizes[name]) != a.sizes[name]:
            raise ValueError(f"unequal: {name}")
    summed = list(over)
    shared = [name for name in a.sizes if name in b.sizes and name not in over]
    own_a = [name for name in a.sizes if name not in b.sizes]
    own_b = [name for name in b.sizes if name not in a.sizes]
    product = torch.bmm(ordered(left, shared, own_a, summed), ordered(right, shared, summed, own_b))
    names = (*shared, *own_a, *own_b)
    sizes = {**a.sizes, **b.sizes}
    return product.reshape([sizes[name] for name in names]), names


def attend(query: Named, key: Named, value: Named) -> Named:
    Axes(query), Axes(key), Axes(value)
    if "seq" in query[1]:
        raise ValueError("the query must not have seq")
    scores, names = contract(query, key, "key")
    if "seq" not in names:
        raise ValueError("missing: seq in the key")
    scores = scores / Axes(key).sizes["key"] ** 0.5
    return contract((scores.softmax(names.index("seq")), names), value, "seq")


def multi_head(x: Named, W_q: Named, W_k: Named, W_v: Named, W_o: Named) -> Named:
    Axes(x)
    heads = attend(
        contract(rename(x, "seq", "query"), W_q, "chans"),
        contract(x, W_k, "chans"),
        contract(x, W_v, "chans"),
    )
    tensor, names = rename(contract(heads, W_o, "head", "val"), "query", "seq")
    return tensor.permute([names.index(name) for name in x[1]]), x[1]
