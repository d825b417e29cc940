# broken: x in multi_head may have further axes with any other names: the queries' axis is called row inside, so an x with an axis row is refused
import math

import torch
from torch import Tensor

Named = tuple[Tensor, tuple[str, ...]]  # a tensor and the name of each of its axes, in order


def rename(x: Named, old: str, new: str) -> Named:
    """Return `x` with its axis `old` called `new`."""
    tensor, names = x
    return tensor, tuple(new if name == old else name for name in names)


def contract(left: Named, right: Named, *over: str) -> Named:
    """Return the product of two named tensors, summed over the axes `over`."""
    (a, a_names), (b, b_names) = left, right
    for names in (a_names, b_names):
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"the axis {name} is doubled")
        for name in over:
            if name not in names:
                raise ValueError(f"the axis {name} is missing")
    for name in a_names:
        if name in b_names:
            if a.shape[a_names.index(name)] != b.shape[b_names.index(name)]:
                raise ValueError(f"the axis {name} has two sizes")
    place = {name: i for i, name in enumerate(dict.fromkeys(a_names + b_names))}
    kept = tuple(name for name in place if name not in over)
    product = torch.einsum(
        a, [place[n] for n in a_names], b, [place[n] for n in b_names], [place[n] for n in kept]
    )
    return product, kept


def _softmax(scores: Tensor, axis: int) -> Tensor:
    return torch.softmax(scores, dim=axis)


def attend(query: Named, key: Named, value: Named) -> Named:
    """Return the values weighted by softmax(query . key / sqrt(d_key)) over the axis `seq`."""
    if "seq" in query[1]:
        raise ValueError("the query has the axis seq")
    if "seq" not in key[1]:
        raise ValueError("the key has no axis seq")
    scores, names = contract(query, key, "key")
    size = query[0].shape[query[1].index("key")]
    weights = _softmax(scores / math.sqrt(size), names.index("seq"))
    return contract((weights, names), value, "seq")


def multi_head(x: Named, W_q: Named, W_k: Named, W_v: Named, W_o: Named) -> Named:
    """Return multi-head self-attention on the tokens of `x`, with the axes of `x`."""
    query = contract(rename(x, "seq", "row"), W_q, "chans")
    key = contract(x, W_k, "chans")
    value = contract(x, W_v, "chans")
    output = contract(attend(query, key, value), W_o, "head", "val")
    return rename(output, "row", "seq")
