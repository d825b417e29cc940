# mistake: one_is_stretched
# an axis of size 1 is broadcast against any other size of the same axis instead of being refused
import math

import torch
from torch import Tensor

Named = tuple[Tensor, tuple[str, ...]]


def rename(x: Named, old: str, new: str) -> Named:
    tensor, names = x
    return tensor, tuple(new if name == old else name for name in names)


def _align(x: Named, names) -> Tensor:
    t, own = x
    t = t.permute([own.index(n) for n in names if n in own])
    for i, n in enumerate(names):
        if n not in own:
            t = t.unsqueeze(i)
    return t


def contract(left: Named, right: Named, *over: str) -> Named:
    for t, names in (left, right):
        for n in names:
            if names.count(n) > 1:
                raise ValueError(f"axis {n} is doubled")
        for n in over:
            if n not in names:
                raise ValueError(f"axis {n} is missing")
    names = left[1] + tuple(n for n in right[1] if n not in left[1])
    a, b = _align(left, names), _align(right, names)
    for n, i, j in zip(names, a.shape, b.shape):
        if i != j and 1 not in (i, j):
            raise ValueError(f"axis {n}: sizes {i} and {j}")
    product = a * b
    if over:
        product = product.sum([names.index(n) for n in over])
    return product, tuple(n for n in names if n not in over)


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
    q = contract(rename(x, "seq", "query"), W_q, "chans")
    k = contract(x, W_k, "chans")
    v = contract(x, W_v, "chans")
    out = contract(attend(q, k, v), W_o, "head", "val")
    return rename(out, "query", "seq")
