# mistake: no_scale
import math

import torch
from torch import Tensor

Named = tuple[Tensor, tuple[str, ...]]  # a tensor and the name of each of its axes, in order


def rename(x: Named, old: str, new: str) -> Named:
    """Return `x` with its axis `old` called `new`."""
    tensor, names = x
    return tensor, tuple(new if name == old else name for name in names)


def sizes(x: Named) -> dict[str, int]:
    """Return the size of each axis by name, and refuse names that occur twice."""
    tensor, names = x
    table: dict[str, int] = {}
    for name, size in zip(names, tensor.shape):
        if name in table:
            raise ValueError(f"doubled axis {name}")
        table[name] = size
    return table


def align(x: Named, order: list[str]) -> Tensor:
    """Return the tensor with its axes in this order, and an axis of size 1 for each that it lacks."""
    tensor, names = x
    have = [name for name in order if name in names]
    tensor = tensor.permute([names.index(name) for name in have])
    for place, name in enumerate(order):
        if name not in names:
            tensor = tensor.unsqueeze(place)
    return tensor


def contract(left: Named, right: Named, *over: str) -> Named:
    """Return the product of two named tensors, summed over the axes `over`."""
    a, b = sizes(left), sizes(right)
    for name in over:
        for table in (a, b):
            if name not in table:
                raise ValueError(f"missing axis {name}")
    for name in a.keys() & b.keys():
        if a[name] != b[name]:
            raise ValueError(f"axis {name} has the sizes {a[name]} and {b[name]}")

    order = list(a) + [name for name in b if name not in a]
    product = align(left, order) * align(right, order)
    total = product.sum(dim=[order.index(name) for name in over])
    return total, tuple(name for name in order if name not in over)


def attend(query: Named, key: Named, value: Named) -> Named:
    """Return the values weighted by softmax(query · key / sqrt(d_key)) over the axis `seq`."""
    if "seq" in query[1]:
        raise ValueError("query has the axis seq")
    if "seq" not in key[1]:
        raise ValueError("key lacks the axis seq")
    scores, names = contract(query, key, "key")
    weights = torch.softmax(scores, dim=names.index("seq"))
    return contract((weights, names), value, "seq")


def multi_head(x: Named, W_q: Named, W_k: Named, W_v: Named, W_o: Named) -> Named:
    """Return multi-head self-attention on the tokens of `x`, with the axes of `x`."""
    tokens = rename(x, "seq", "query")
    q = contract(tokens, W_q, "chans")
    k = contract(x, W_k, "chans")
    v = contract(x, W_v, "chans")
    heads = attend(q, k, v)
    return rename(contract(heads, W_o, "head", "val"), "query", "seq")
