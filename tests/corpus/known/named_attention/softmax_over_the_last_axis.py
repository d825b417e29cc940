# mistake: softmax_over_the_last_axis
import math

import torch
from torch import Tensor

Named = tuple[Tensor, tuple[str, ...]]  # a tensor and the name of each of its axes, in order


def rename(x: Named, old: str, new: str) -> Named:
    """Return `x` with its axis `old` called `new`."""
    tensor, names = x
    return tensor, tuple(new if name == old else name for name in names)


def check(left: Named, right: Named, over: tuple[str, ...]) -> None:
    for _, names in (left, right):
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"the axis {name!r} is doubled")
        for name in over:
            if name not in names:
                raise ValueError(f"the axis {name!r} is missing")
    sizes = dict(zip(left[1], left[0].shape))
    for name, size in zip(right[1], right[0].shape):
        if sizes.get(name, size) != size:
            raise ValueError(f"the axis {name!r} has the sizes {sizes[name]} and {size}")


def contract(left: Named, right: Named, *over: str) -> Named:
    """Return the product of two named tensors, summed over the axes `over`."""
    check(left, right, over)
    names = tuple(dict.fromkeys(left[1] + right[1]))
    number = {name: i for i, name in enumerate(names)}
    kept = tuple(name for name in names if name not in over)
    product = torch.einsum(
        left[0],
        [number[name] for name in left[1]],
        right[0],
        [number[name] for name in right[1]],
        [number[name] for name in kept],
    )
    return product, kept


def attend(query: Named, key: Named, value: Named) -> Named:
    """Return the values weighted by softmax(query · key / sqrt(d_key)) over the axis `seq`."""
    if "seq" in query[1]:
        raise ValueError("the query has the axis 'seq'")
    if "seq" not in key[1]:
        raise ValueError("the key lacks the axis 'seq'")
    scores, names = contract(query, key, "key")
    d_key = key[0].shape[key[1].index("key")]
    weights = torch.softmax(scores / math.sqrt(d_key), dim=-1)
    return contract((weights, names), value, "seq")


def multi_head(x: Named, W_q: Named, W_k: Named, W_v: Named, W_o: Named) -> Named:
    """Return multi-head self-attention on the tokens of `x`, with the axes of `x`."""
    query = contract(rename(x, "seq", "query"), W_q, "chans")
    key = contract(x, W_k, "chans")
    value = contract(x, W_v, "chans")
    output = contract(attend(query, key, value), W_o, "head", "val")
    return rename(output, "query", "seq")
