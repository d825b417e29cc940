# mistake: every_shared_axis_summed
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
    t1, n1 = left
    t2, n2 = right
    sizes1 = {}
    for n, s in zip(n1, t1.shape):
        if n in sizes1:
            raise ValueError("doubled axis: " + n)
        sizes1[n] = s
    sizes2 = {}
    for n, s in zip(n2, t2.shape):
        if n in sizes2:
            raise ValueError("doubled axis: " + n)
        sizes2[n] = s
    for n in over:
        if n not in sizes1 or n not in sizes2:
            raise ValueError("missing axis: " + n)
    for n in sizes1:
        if n in sizes2 and sizes1[n] != sizes2[n]:
            raise ValueError("unequal axis: " + n)
    number = {n: i for i, n in enumerate({**sizes1, **sizes2})}
    result = [n for n in number if not (n in sizes1 and n in sizes2)]
    out = torch.einsum(
        t1, [number[n] for n in n1], t2, [number[n] for n in n2], [number[n] for n in result]
    )
    return out, tuple(result)


def softmax_over(x: Named, axis: str) -> Named:
    t, names = x
    if axis not in names:
        raise ValueError("missing axis: " + axis)
    dim = names.index(axis)
    t = t - t.amax(dim, keepdim=True)
    e = t.exp()
    return e / e.sum(dim, keepdim=True), names


def attend(query: Named, key: Named, value: Named) -> Named:
    """Return the values weighted by softmax(query · key / sqrt(d_key)) over the axis `seq`."""
    for tensor_names in [query[1], key[1]]:
        if "key" not in tensor_names:
            raise ValueError("missing axis: key")
    if "seq" in query[1]:
        raise ValueError("query has an axis seq")
    if "seq" not in key[1] or "seq" not in value[1]:
        raise ValueError("missing axis: seq")
    scale = 1 / math.sqrt(dict(zip(key[1], key[0].shape))["key"])
    scores = contract((query[0] * scale, query[1]), key, "key")
    weights = softmax_over(scores, "seq")
    return contract(weights, value, "seq")


def multi_head(x: Named, W_q: Named, W_k: Named, W_v: Named, W_o: Named) -> Named:
    """Return multi-head self-attend on the tokens of `x`, with the axes of `x`."""
    if "seq" not in x[1]:
        raise ValueError("missing axis: seq")
    if x[1].count("seq") > 1:
        raise ValueError("doubled axis: seq")
    for w in (W_q, W_k, W_v, W_o):
        for n in ("head", "chans", "key" if w is W_q or w is W_k else "val"):
            if n not in w[1]:
                raise ValueError("missing axis: " + n)
    x_q = rename(x, "seq", "query")
    att = attend(
        contract(x_q, W_q, "chans"), contract(x, W_k, "chans"), contract(x, W_v, "chans")
    )
    y = contract(W_o, att, "head", "val")
    return rename(y, "query", "seq")
