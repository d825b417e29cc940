# style: unusual
import math

import torch
from torch import Tensor

Named = tuple[Tensor, tuple[str, ...]]  # a tensor and the name of each of its axes, in order


def rename(x: Named, old: str, new: str) -> Named:
    """Return `x` with its axis `old` called `new`."""
    tensor, names = x
    return tensor, tuple(new if name == old else name for name in names)


def _check_doubled(names: tuple[str, ...]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"axis {name!r} is there twice")


def contract(left: Named, right: Named, *over: str) -> Named:
    """Return the product of two named tensors, summed over the axes `over`.

    Axes with the same name are aligned. The result has every axis of both but those of `over`.
    Raises ValueError for an axis that is missing, doubled or of two sizes; the message names it.
    """
    lt, ln = left
    rt, rn = right
    _check_doubled(ln)
    _check_doubled(rn)
    for name in over:
        if name not in ln or name not in rn:
            raise ValueError(f"axis {name!r} is missing")
    for name in ln:
        if name in rn and lt.shape[ln.index(name)] != rt.shape[rn.index(name)]:
            raise ValueError(f"axis {name!r} has two sizes")

    number = {}
    for name in ln + rn:
        number.setdefault(name, len(number))
    out = tuple(name for name in number if name not in over)
    result = torch.einsum(
        lt, [number[n] for n in ln], rt, [number[n] for n in rn], [number[n] for n in out]
    )
    return result, out


def attend(query: Named, key: Named, value: Named) -> Named:
    """Return the values weighted by softmax(query · key / sqrt(d_key)) over the axis `seq`."""
    if "seq" in query[1]:
        raise ValueError("the query must not have the axis 'seq'")
    if "seq" not in key[1]:
        raise ValueError("the key lacks the axis 'seq'")
    scores, names = contract(query, key, "key")
    size = query[0].shape[query[1].index("key")]
    weights = torch.softmax(scores / math.sqrt(size), dim=names.index("seq"))
    return contract((weights, names), value, "seq")


def multi_head(x: Named, W_q: Named, W_k: Named, W_v: Named, W_o: Named) -> Named:
    """Return multi-head self-attention on the tokens of `x`, with the axes of `x`."""
    query = contract(rename(x, "seq", "query"), W_q, "chans")
    key = contract(x, W_k, "chans")
    value = contract(x, W_v, "chans")
    output = contract(attend(query, key, value), W_o, "head", "val")
    return rename(output, "query", "seq")
