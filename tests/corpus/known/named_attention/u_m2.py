# mistake: aligned_by_reshape
import math

import torch
from torch import Tensor

Named = tuple[Tensor, tuple[str, ...]]  # a tensor and the name of each of its axes, in order


def rename(x: Named, old: str, new: str) -> Named:
    """Return `x` with its axis `old` called `new`."""
    tensor, names = x
    return tensor, tuple(new if name == old else name for name in names)


def _check(left: Named, right: Named, over: tuple[str, ...]) -> None:
    sizes = {}
    for tensor, names in (left, right):
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"axis {name} is doubled")
        for name in over:
            if name not in names:
                raise ValueError(f"axis {name} is missing")
        for name, size in zip(names, tensor.shape):
            if sizes.setdefault(name, size) != size:
                raise ValueError(f"axis {name} has the sizes {sizes[name]} and {size}")


def _fit(x: Named, order: list[str]) -> Tensor:
    size = dict(zip(x[1], x[0].shape))
    return x[0].reshape([size.get(name, 1) for name in order])


def contract(left: Named, right: Named, *over: str) -> Named:
    _check(left, right, over)
    order = list(left[1]) + [name for name in right[1] if name not in left[1]]
    product = _fit(left, order) * _fit(right, order)
    summed = product.sum([order.index(name) for name in over])
    return summed, tuple(name for name in order if name not in over)


def attend(query: Named, key: Named, value: Named) -> Named:
    if "seq" in query[1]:
        raise ValueError("query has the axis seq")
    if "seq" not in key[1]:
        raise ValueError("key lacks the axis seq")
    scores, names = contract(query, key, "key")
    d_key = key[0].shape[key[1].index("key")]
    weights = torch.softmax(scores / math.sqrt(d_key), dim=names.index("seq"))
    return contract((weights, names), value, "seq")


def multi_head(x: Named, W_q: Named, W_k: Named, W_v: Named, W_o: Named) -> Named:
    query = rename(contract(x, W_q, "chans"), "seq", "query")
    key = contract(x, W_k, "chans")
    value = contract(x, W_v, "chans")
    heads = attend(query, key, value)
    return rename(contract(W_o, heads, "head", "val"), "query", "seq")
