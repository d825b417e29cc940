# right: einsum with lists of axis numbers, a helper class for axes, softmax over the named axis
import math

import torch
from torch import Tensor

Named = tuple[Tensor, tuple[str, ...]]  # a tensor and the name of each of its axes, in order


def rename(x: Named, old: str, new: str) -> Named:
    """Return `x` with its axis `old` called `new`."""
    tensor, names = x
    return tensor, tuple(new if name == old else name for name in names)


class _Axes:
    """Numbers the axes of two named tensors, and refuses those that do not fit."""

    def __init__(self, left: Named, right: Named):
        self.sizes: dict[str, int] = {}
        for tensor, names in (left, right):
            seen = set()
            for name, size in zip(names, tensor.shape):
                if name in seen:
                    raise ValueError(f"the axis {name} occurs twice in {names}")
                seen.add(name)
                if self.sizes.setdefault(name, size) != size:
                    raise ValueError(f"the axis {name} has sizes {self.sizes[name]} and {size}")
        self.order = list(self.sizes)

    def numbers(self, names) -> list[int]:
        return [self.order.index(name) for name in names]


def contract(left: Named, right: Named, *over: str) -> Named:
    axes = _Axes(left, right)
    for name in over:
        if name not in left[1] or name not in right[1]:
            raise ValueError(f"the axis {name} is missing")
    rest = tuple(name for name in axes.order if name not in over)
    result = torch.einsum(
        left[0],
        axes.numbers(left[1]),
        right[0],
        axes.numbers(right[1]),
        axes.numbers(rest),
    )
    return result, rest


def attend(query: Named, key: Named, value: Named) -> Named:
    if "seq" in query[1]:
        raise ValueError("a query must not have the axis seq")
    if "seq" not in key[1]:
        raise ValueError("the axis seq is missing in key")
    scores, names = contract(query, key, "key")
    size = dict(zip(key[1], key[0].shape))["key"]
    weights = scores.div(math.sqrt(size)).softmax(dim=names.index("seq"))
    return contract((weights, names), value, "seq")


def multi_head(x: Named, W_q: Named, W_k: Named, W_v: Named, W_o: Named) -> Named:
    query = rename(contract(x, W_q, "chans"), "seq", "query")
    key = contract(x, W_k, "chans")
    value = contract(x, W_v, "chans")
    heads = attend(query, key, value)
    return rename(contract(W_o, heads, "head", "val"), "query", "seq")
