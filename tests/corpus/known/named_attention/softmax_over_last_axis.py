# mistake: softmax_over_the_last_axis
# the softmax in attend runs over the last axis of the scores, whatever its name is, instead of over seq
import math

import torch
from torch import Tensor

Named = tuple[Tensor, tuple[str, ...]]


def rename(x: Named, old: str, new: str) -> Named:
    tensor, names = x
    return tensor, tuple(new if name == old else name for name in names)


def contract(left: Named, right: Named, *over: str) -> Named:
    x, xn = left
    y, yn = right
    seen = {}
    for t, names in ((x, xn), (y, yn)):
        if len(set(names)) != len(names):
            raise ValueError("doubled axis: " + ", ".join(n for n in names if names.count(n) == 2))
        for n, s in zip(names, t.shape):
            if n in seen and seen[n] != s:
                raise ValueError(f"axis {n} has two sizes, {seen[n]} and {s}")
            seen[n] = s
        for n in over:
            if n not in names:
                raise ValueError(f"axis {n} is not in {names}")
    idx = {n: i for i, n in enumerate(seen)}
    keep = tuple(n for n in seen if n not in over)
    z = torch.einsum(x, [idx[n] for n in xn], y, [idx[n] for n in yn], [idx[n] for n in keep])
    return z, keep


def attend(query: Named, key: Named, value: Named) -> Named:
    if "seq" in query[1]:
        raise ValueError("the query has an axis seq")
    if "seq" not in key[1]:
        raise ValueError("the key has no axis seq")
    scores, names = contract(query, key, "key")
    d = key[0].shape[key[1].index("key")]
    weights = torch.softmax(scores / math.sqrt(d), dim=-1)
    return contract((weights, names), value, "seq")


def multi_head(x: Named, W_q: Named, W_k: Named, W_v: Named, W_o: Named) -> Named:
    q = contract(rename(x, "seq", "query"), W_q, "chans")
    k = contract(x, W_k, "chans")
    v = contract(x, W_v, "chans")
    return rename(contract(attend(q, k, v), W_o, "head", "val"), "query", "seq")
