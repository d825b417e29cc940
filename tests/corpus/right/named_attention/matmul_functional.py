# right: functional style with matmul on aligned axes, a decorator-like guard, no einsum
import math

import torch
from torch import Tensor

Named = tuple[Tensor, tuple[str, ...]]  # a tensor and the name of each of its axes, in order


def rename(x: Named, old: str, new: str) -> Named:
    """Return `x` with its axis `old` called `new`."""
    tensor, names = x
    return tensor, tuple(new if name == old else name for name in names)


def _guard(x: Named, must: tuple[str, ...] = (), must_not: tuple[str, ...] = ()) -> Named:
    """Return x if its names are as they should be."""
    names = x[1]
    problem = (
        [f"{n} is missing in {names}" for n in must if n not in names]
        + [f"{n} must not be in {names}" for n in must_not if n in names]
        + [f"{n} is doubled in {names}" for n in names if names.count(n) != 1]
    )
    if problem:
        raise ValueError("; ".join(problem))
    return x


def _same_sizes(left: Named, right: Named) -> None:
    for i, n in enumerate(left[1]):
        if n in right[1]:
            j = right[1].index(n)
            if left[0].shape[i] != right[0].shape[j]:
                raise ValueError(f"{n} is {left[0].shape[i]} here and {right[0].shape[j]} there")


def contract(left: Named, right: Named, *over: str) -> Named:
    (a, na), (b, nb) = _guard(left, over), _guard(right, over)
    _same_sizes(left, right)
    both = [n for n in na if n in nb and n not in over]
    only_a = [n for n in na if n not in nb]
    only_b = [n for n in nb if n not in na]
    inner = [n for n in na if n in over]
    a = a.permute([na.index(n) for n in both + only_a + inner])
    b = b.permute([nb.index(n) for n in both + inner + only_b])
    lead, rows, columns = len(both), len(only_a), len(only_b)
    shape = a.shape[: lead + rows] + b.shape[b.dim() - columns :]
    depth = math.prod(a.shape[lead + rows :])
    a = a.reshape(*a.shape[:lead], math.prod(a.shape[lead : lead + rows]), depth)
    b = b.reshape(*b.shape[:lead], depth, math.prod(b.shape[b.dim() - columns :]))
    return torch.matmul(a, b).reshape(shape), tuple(both + only_a + only_b)


def _apply(x: Named, function) -> Named:
    return function(x[0]), x[1]


def attend(query: Named, key: Named, value: Named) -> Named:
    _guard(query, ("key",), ("seq",))
    _guard(key, ("key", "seq"))
    _guard(value, ("seq",))
    d_key = key[0].shape[key[1].index("key")]
    quarter = d_key**-0.25
    scores = contract(
        _apply(query, lambda t: t * quarter), _apply(key, lambda t: t * quarter), "key"
    )
    weights = _apply(scores, lambda t: t.softmax(scores[1].index("seq")))
    return contract(weights, value, "seq")


def multi_head(x: Named, W_q: Named, W_k: Named, W_v: Named, W_o: Named) -> Named:
    _guard(x, ("seq", "chans"), ("query",))
    for w in (W_q, W_k):
        _guard(w, ("head", "chans", "key"))
    for w in (W_v, W_o):
        _guard(w, ("head", "chans", "val"))
    as_query = rename(x, "seq", "query")
    q = contract(as_query, W_q, "chans")
    k, v = (contract(x, w, "chans") for w in (W_k, W_v))
    return rename(contract(attend(q, k, v), W_o, "head", "val"), "query", "seq")
