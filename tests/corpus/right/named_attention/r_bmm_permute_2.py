from __future__ import annotations

import math

import torch
from torch import Tensor

Named = tuple[Tensor, tuple[str, ...]]


def rename(x: Named, old: str, new: str) -> Named:
    tensor, names = x
    return tensor, tuple(new if name == old else name for name in names)


def _sizes(x: Named) -> dict[str, int]:
    tensor, names = x
    sizes: dict[str, int] = {}
    for name, size in zip(names, tensor.shape):
        if name in sizes:
            raise ValueError(f"doubled axis: {name}")
        sizes[name] = size
    return sizes


def contract(left: Named, right: Named, *over: str) -> Named:
    """As one bmm: (both, left only, over) times (both, over, right only)."""
    ls, rs = _sizes(left), _sizes(right)
    for name in over:
        if name not in ls or name not in rs:
            raise ValueError(f"missing axis: {name}")
    for name, size in ls.items():
        if rs.get(name, size) != size:
            raise ValueError(f"unequal axis: {name}, {size} and {rs[name]}")

    both = [n for n in ls if n in rs and n not in over]
    only_l = [n for n in ls if n not in rs]
    only_r = [n for n in rs if n not in ls]

    def order(x: Named, names: list[str]) -> Tensor:
        return x[0].permute([x[1].index(n) for n in names])

    count = lambda sizes, names: math.prod(sizes[n] for n in names)
    n_both, n_over = count(ls, both), count(ls, over)
    a = order(left, both + only_l + list(over)).reshape(n_both, count(ls, only_l), n_over)
    b = order(right, both + list(over) + only_r).reshape(n_both, n_over, count(rs, only_r))
    names = tuple(both + only_l + only_r)
    shape = [{**rs, **ls}[n] for n in names]
    return torch.bmm(a, b).reshape(shape), names


def attend(query: Named, key: Named, value: Named) -> Named:
    if "seq" in query[1] or "seq" not in key[1]:
        raise ValueError("axis seq: not in the query, but in the key")
    product, names = contract(query, key, "key")
    axis = names.index("seq")
    logits = product / _sizes(key)["key"] ** 0.5
    # softmax von Hand
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
    wide = torch.exp(wide - wide.amax(dim=axis, keepdim=True))
    weights = (wide / wide.sum(dim=axis, keepdim=True)).to(logits.dtype)
    return contract((weights, names), value, "seq")


def multi_head(x: Named, W_q: Named, W_k: Named, W_v: Named, W_o: Named) -> Named:
    asking = rename(x, "seq", "query")
    mixed = attend(*(contract(t, W, "chans") for t, W in ((asking, W_q), (x, W_k), (x, W_v))))
    return rename(contract(mixed, W_o, "head", "val"), "query", "seq")
