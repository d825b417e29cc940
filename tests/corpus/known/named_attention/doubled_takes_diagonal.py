# mistake: doubled_axis_accepted
import math

import torch
from torch import Tensor

Named = tuple[Tensor, tuple[str, ...]]  # a tensor and the name of each of its axes, in order


def rename(x: Named, old: str, new: str) -> Named:
    """Return `x` with its axis `old` called `new`."""
    tensor, names = x
    return tensor, tuple(new if name == old else name for name in names)


def check(x: Named, *needed: str) -> None:
    _, names = x
    for name in needed:
        if name not in names:
            raise ValueError(f"axis {name} is missing")


def contract(left: Named, right: Named, *over: str) -> Named:
    check(left, *over)
    check(right, *over)
    a, a_names = left
    b, b_names = right
    for name in a_names:
        if name in b_names:
            if a.shape[a_names.index(name)] != b.shape[b_names.index(name)]:
                raise ValueError(f"axis {name} has two sizes")
    all_names = list(a_names) + [name for name in b_names if name not in a_names]
    letter = {name: "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[i] for i, name in enumerate(all_names)}
    out_names = tuple(name for name in all_names if name not in over)
    formula = (
        "".join(letter[n] for n in a_names)
        + ","
        + "".join(letter[n] for n in b_names)
        + "->"
        + "".join(letter[n] for n in out_names)
    )
    return torch.einsum(formula, a, b), out_names


def attend(query: Named, key: Named, value: Named) -> Named:
    check(query, "key")
    check(key, "key", "seq")
    check(value, "seq")
    if "seq" in query[1]:
        raise ValueError("the query has the axis seq")
    d_key = query[0].shape[query[1].index("key")]
    scaled = query[0] / math.sqrt(d_key)
    scores, names = contract((scaled, query[1]), key, "key")
    weights = torch.softmax(scores, dim=names.index("seq"))
    return contract((weights, names), value, "seq")


def multi_head(x: Named, W_q: Named, W_k: Named, W_v: Named, W_o: Named) -> Named:
    check(x, "seq", "chans")
    check(W_q, "head", "chans", "key")
    check(W_k, "head", "chans", "key")
    check(W_v, "head", "chans", "val")
    check(W_o, "head", "val", "chans")
    q = contract(rename(x, "seq", "query"), W_q, "chans")
    k = contract(x, W_k, "chans")
    v = contract(x, W_v, "chans")
    heads = attend(q, k, v)
    out = contract(heads, W_o, "head", "val")
    return rename(out, "query", "seq")
