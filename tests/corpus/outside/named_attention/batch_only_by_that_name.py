# mistake: not in the catalogue: multi_head averages the result over all further axes that are not called batch
import math

import torch
from torch import Tensor

Named = tuple[Tensor, tuple[str, ...]]  # a tensor and the name of each of its axes, in order


def rename(x: Named, old: str, new: str) -> Named:
    """Return `x` with its axis `old` called `new`."""
    tensor, names = x
    return tensor, tuple(new if name == old else name for name in names)


def size_of(x: Named, name: str) -> int:
    tensor, names = x
    if name not in names:
        raise ValueError(f"no axis called {name!r} in {names}")
    return tensor.size(names.index(name))


def order_like(x: Named, order: list[str]) -> Tensor:
    """Put the axes into this order, with size 1 where x has no such axis."""
    tensor, names = x
    have = [names.index(name) for name in order if name in names]
    tensor = tensor.permute(have)
    for place, name in enumerate(order):
        if name not in names:
            tensor = tensor.unsqueeze(place)
    return tensor


def contract(left: Named, right: Named, *over: str) -> Named:
    """Multiply with broadcasting, then sum."""
    for _, names in (left, right):
        for name in set(names):
            if list(names).count(name) != 1:
                raise ValueError(f"the axis {name!r} occurs more than once")
    shared = [name for name in left[1] if name in right[1]]
    for name in over:
        size_of(left, name)
        size_of(right, name)
    for name in shared:
        if size_of(left, name) != size_of(right, name):
            raise ValueError(f"the sizes of {name!r} differ")
    kept = [name for name in left[1] if name not in over]
    kept = kept + [name for name in right[1] if name not in over and name not in kept]
    order = kept + list(over)
    product = order_like(left, order) * order_like(right, order)
    last = tuple(range(len(kept), len(order)))
    return product.sum(dim=last), tuple(kept)


def attend(query: Named, key: Named, value: Named) -> Named:
    """softmax(q k / sqrt(d)) v"""
    if "seq" in query[1]:
        raise ValueError("seq must not be an axis of the query")
    size_of(key, "seq")
    size_of(value, "seq")
    root = size_of(query, "key") ** 0.5
    scores, names = contract((query[0] / root, query[1]), key, "key")
    weights = scores.softmax(names.index("seq"))
    return contract((weights, names), value, "seq")


def multi_head(x: Named, W_q: Named, W_k: Named, W_v: Named, W_o: Named) -> Named:
    """Project, attend, project back."""
    size_of(x, "seq")
    for w, last in [(W_q, "key"), (W_k, "key"), (W_v, "val"), (W_o, "val")]:
        for name in ("head", "chans", last):
            size_of(w, name)
    queries = rename(contract(x, W_q, "chans"), "seq", "query")
    keys = contract(x, W_k, "chans")
    values = contract(x, W_v, "chans")
    mixed = attend(queries, keys, values)
    result = contract(W_o, mixed, "head", "val")
    tensor, names = rename(result, "query", "seq")
    for name in names:
        if name not in ("batch", "seq", "chans"):
            # left over from the heads
            tensor = tensor.mean(names.index(name))
            names = tuple(n for n in names if n != name)
    return tensor, names
