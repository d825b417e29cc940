# broken: "unequal: an axis has different sizes ..., also if one of the sizes is 1": size 1 is broadcast
import math

import torch
from torch import Tensor

Named = tuple[Tensor, tuple[str, ...]]


def rename(x: Named, old: str, new: str) -> Named:
    """Return `x` with its axis `old` called `new`."""
    tensor, names = x
    return tensor, tuple(new if name == old else name for name in names)


def contract(left: Named, right: Named, *over: str) -> Named:
    """Return the product of two named tensors, summed over the axes `over`."""
    a, a_names = left
    b, b_names = right
    for names in (a_names, b_names):
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"axis {name} is doubled")
    for name in over:
        if name not in a_names or name not in b_names:
            raise ValueError(f"axis {name} is missing")
    for name in a_names:
        if name in b_names:
            size_a = a.shape[a_names.index(name)]
            size_b = b.shape[b_names.index(name)]
            if size_a != size_b and 1 not in (size_a, size_b):
                raise ValueError(f"axis {name} has the sizes {size_a} and {size_b}")
    every = list(dict.fromkeys(a_names + b_names))
    kept = tuple(name for name in every if name not in over)
    number = {name: i for i, name in enumerate(every)}
    product = torch.einsum(
        a, [number[n] for n in a_names], b, [number[n] for n in b_names], [number[n] for n in kept]
    )
    return product, kept


def attend(query: Named, key: Named, value: Named) -> Named:
    """Return the values weighted by softmax(query . key / sqrt(d_key)) over the axis seq."""
    if "seq" in query[1]:
        raise ValueError("the query has the axis seq")
    if "seq" not in key[1]:
        raise ValueError("the key lacks the axis seq")
    scores, names = contract(query, key, "key")
    d_key = key[0].shape[key[1].index("key")]
    weights = torch.softmax(scores / math.sqrt(d_key), dim=names.index("seq"))
    return contract((weights, names), value, "seq")


def multi_head(x: Named, W_q: Named, W_k: Named, W_v: Named, W_o: Named) -> Named:
    """Return multi-head self-attention on the tokens of x, with the axes of x."""
    query = contract(rename(x, "seq", "query"), W_q, "chans")
    key = contract(x, W_k, "chans")
    value = contract(x, W_v, "chans")
    heads = attend(query, key, value)
    return rename(contract(heads, W_o, "head", "val"), "query", "seq")
