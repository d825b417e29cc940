# mistake: aligned_by_reshape
import math

import torch
from torch import Tensor

Named = tuple[Tensor, tuple[str, ...]]


def rename(x: Named, old: str, new: str) -> Named:
    """Return `x` with its axis `old` called `new`."""
    tensor, names = x
    return tensor, tuple(new if name == old else name for name in names)


def _shape(named, order):
    sizes = dict(zip(named[1], named[0].shape))
    return [sizes.get(n, 1) for n in order]


def contract(left: Named, right: Named, *over: str) -> Named:
    (a, names_a), (b, names_b) = left, right
    for names in (names_a, names_b):
        twice = [n for n in names if names.count(n) > 1]
        if twice:
            raise ValueError("axis twice: " + twice[0])
        lacking = [n for n in over if n not in names]
        if lacking:
            raise ValueError("no axis " + lacking[0])
    for n in names_a:
        if n in names_b and a.shape[names_a.index(n)] != b.shape[names_b.index(n)]:
            raise ValueError("sizes differ for " + n)
    order = names_a + tuple(n for n in names_b if n not in names_a)
    a = a.reshape(_shape(left, order))
    b = b.reshape(_shape(right, order))
    dims = tuple(order.index(n) for n in over)
    return (a * b).sum(dims), tuple(n for n in order if n not in over)


def attend(query: Named, key: Named, value: Named) -> Named:
    if "seq" in query[1]:
        raise ValueError("query with an axis seq")
    if "seq" not in key[1]:
        raise ValueError("key without the axis seq")
    s, names = contract(query, key, "key")
    s = s / query[0].size(query[1].index("key")) ** 0.5
    return contract((torch.softmax(s, names.index("seq")), names), value, "seq")


def multi_head(x: Named, W_q: Named, W_k: Named, W_v: Named, W_o: Named) -> Named:
    x_query = rename(x, "seq", "query")
    context = attend(
        contract(x_query, W_q, "chans"), contract(x, W_k, "chans"), contract(x, W_v, "chans")
    )
    return rename(contract(context, W_o, "head", "val"), "query", "seq")
