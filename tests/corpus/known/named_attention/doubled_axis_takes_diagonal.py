# mistake: doubled_axis_accepted
# an axis that a tensor has twice is not refused, the product silently takes its diagonal
import math

import torch
from torch import Tensor

Named = tuple[Tensor, tuple[str, ...]]


def rename(x: Named, old: str, new: str) -> Named:
    tensor, names = x
    return tensor, tuple(new if name == old else name for name in names)


def contract(left: Named, right: Named, *over: str) -> Named:
    for name in over:
        if name not in left[1] or name not in right[1]:
            raise ValueError(f"axis {name!r} is missing")
    sizes: dict[str, int] = {}
    for tensor, names in (left, right):
        for name, n in zip(names, tensor.shape):
            if sizes.setdefault(name, n) != n:
                raise ValueError(f"axis {name!r} has unequal sizes {sizes[name]}, {n}")
    code = {name: i for i, name in enumerate(sizes)}
    rest = tuple(name for name in sizes if name not in over)
    args = [left[0], [code[n] for n in left[1]], right[0], [code[n] for n in right[1]]]
    return torch.einsum(*args, [code[n] for n in rest]), rest


def attend(query: Named, key: Named, value: Named) -> Named:
    if "seq" in query[1]:
        raise ValueError("query may not have the axis 'seq'")
    if "seq" not in key[1]:
        raise ValueError("key must have the axis 'seq'")
    scores, names = contract(query, key, "key")
    root = math.sqrt(key[0].shape[key[1].index("key")])
    return contract(((scores / root).softmax(names.index("seq")), names), value, "seq")


def multi_head(x: Named, W_q: Named, W_k: Named, W_v: Named, W_o: Named) -> Named:
    q = contract(rename(x, "seq", "query"), W_q, "chans")
    k = contract(x, W_k, "chans")
    v = contract(x, W_v, "chans")
    return rename(contract(attend(q, k, v), W_o, "head", "val"), "query", "seq")
