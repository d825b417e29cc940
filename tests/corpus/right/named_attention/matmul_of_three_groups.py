# note: every contraction becomes one batched matrix product of reshaped tensors (shared, own, summed), without einsum
import math

import torch
from torch import Tensor

Named = tuple[Tensor, tuple[str, ...]]


def rename(x: Named, old: str, new: str) -> Named:
    tensor, names = x
    return tensor, tuple(new if name == old else name for name in names)


def _sizes(x: Named) -> dict[str, int]:
    t, names = x
    sizes: dict[str, int] = {}
    for name, n in zip(names, t.shape, strict=True):
        if name in sizes:
            raise ValueError(f"axis {name!r} occurs twice in {names}")
        sizes[name] = n
    return sizes


def contract(left: Named, right: Named, *over: str) -> Named:
    ls, rs = _sizes(left), _sizes(right)
    for name in over:
        for sizes in (ls, rs):
            if name not in sizes:
                raise ValueError(f"there is no axis {name!r} in {tuple(sizes)}")
    for name in ls:
        if name in rs and ls[name] != rs[name]:
            raise ValueError(f"axis {name!r} has the sizes {ls[name]} and {rs[name]}")
    both = [n for n in ls if n in rs and n not in over]
    own_l = [n for n in ls if n not in rs]
    own_r = [n for n in rs if n not in ls]

    def arrange(x: Named, *groups):
        t, names = x
        order = [names.index(n) for g in groups for n in g]
        sizes = dict(zip(names, t.shape))
        return t.permute(order).reshape([math.prod(sizes[n] for n in g) for g in groups])

    a = arrange(left, both, own_l, over)
    b = arrange(right, both, over, own_r)
    names = (*both, *own_l, *own_r)
    all_sizes = ls | rs
    return torch.bmm(a, b).reshape([all_sizes[n] for n in names]), names


def attend(query: Named, key: Named, value: Named) -> Named:
    if "seq" in query[1]:
        raise ValueError("the query must not have the axis seq")
    if "seq" not in key[1]:
        raise ValueError("the key lacks the axis seq")
    scores, names = contract(query, key, "key")
    d = key[0].shape[key[1].index("key")]
    weights = (scores / math.sqrt(d)).softmax(names.index("seq"))
    return contract((weights, names), value, "seq")


def multi_head(x: Named, W_q: Named, W_k: Named, W_v: Named, W_o: Named) -> Named:
    q = contract(rename(x, "seq", "query"), W_q, "chans")
    k = contract(x, W_k, "chans")
    v = contract(x, W_v, "chans")
    return rename(contract(attend(q, k, v), W_o, "head", "val"), "query", "seq")
