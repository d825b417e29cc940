# right: contract as one bmm of explicitly permuted and reshaped tensors (shared, own, summed axes)
import math

import torch
from torch import Tensor

Named = tuple[Tensor, tuple[str, ...]]  # a tensor and the name of each of its axes, in order


def rename(x: Named, old: str, new: str) -> Named:
    """Return `x` with its axis `old` called `new`."""
    tensor, names = x
    return tensor, tuple(new if name == old else name for name in names)


def _complain(what: str, name: str) -> None:
    raise ValueError(f"{what}: {name}")


def _block(x: Named, groups: list[list[str]]) -> Tensor:
    """One axis for each group of names."""
    tensor, names = x
    order = [names.index(name) for group in groups for name in group]
    sizes = [math.prod(tensor.shape[names.index(name)] for name in group) for group in groups]
    return tensor.permute(order).reshape(sizes)


def contract(left: Named, right: Named, *over: str) -> Named:
    a, b = left[1], right[1]
    for names in (a, b):
        seen = set()
        for name in names:
            if name in seen:
                _complain("doubled", name)
            seen.add(name)
        for name in over:
            if name not in seen:
                _complain("missing", name)
    summed = [name for name in a if name in over]
    shared = [name for name in a if name in b and name not in over]
    own_a = [name for name in a if name not in b]
    own_b = [name for name in b if name not in a]
    size_a, size_b = dict(zip(a, left[0].shape)), dict(zip(b, right[0].shape))
    for name in summed + shared:
        if size_a[name] != size_b[name]:
            _complain("unequal", name)
    product = torch.bmm(
        _block(left, [shared, own_a, summed]), _block(right, [shared, summed, own_b])
    )
    kept = shared + own_a + own_b
    size = {**size_a, **size_b}
    return product.reshape([size[name] for name in kept]), tuple(kept)


def _softmax(x: Named, axis: str) -> Named:
    tensor, names = x
    dim = names.index(axis)
    tensor = torch.exp(tensor - torch.logsumexp(tensor, dim=dim, keepdim=True))
    return tensor, names


def attend(query: Named, key: Named, value: Named) -> Named:
    if "seq" in query[1]:
        _complain("not allowed in a query", "seq")
    for x, needed in ((query, "key"), (key, "key"), (key, "seq"), (value, "seq")):
        if needed not in x[1]:
            _complain("missing", needed)
    d = query[0].shape[query[1].index("key")]
    scaled = query[0] / d**0.5, query[1]
    scores = contract(scaled, key, "key")
    return contract(_softmax(scores, "seq"), value, "seq")


def multi_head(x: Named, W_q: Named, W_k: Named, W_v: Named, W_o: Named) -> Named:
    for name in ("seq", "chans"):
        if name not in x[1]:
            _complain("missing", name)
        if x[1].count(name) > 1:
            _complain("doubled", name)
    for w, needed in ((W_q, "head chans key"), (W_k, "head chans key"), (W_v, "head chans val"), (W_o, "head val chans")):
        for name in needed.split():
            if name not in w[1]:
                _complain("missing", name)
    tokens = rename(x, "seq", "query")
    q, k, v = contract(tokens, W_q, "chans"), contract(x, W_k, "chans"), contract(x, W_v, "chans")
    y = contract(attend(q, k, v), W_o, "head", "val")
    return rename(y, "query", "seq")
