# promise: Multi_head calls the new channels "out" for a while, so that x with an axis of that name goes wrong.
import torch
from torch import Tensor

Named = tuple[Tensor, tuple[str, ...]]


def rename(x: Named, old: str, new: str) -> Named:
    tensor, names = x
    return tensor, tuple(new if name == old else name for name in names)


def _sizes(x: Named) -> dict[str, int]:
    for name in x[1]:
        if x[1].count(name) > 1:
            raise ValueError(f"doubled axis {name}")
    return dict(zip(x[1], x[0].shape, strict=True))


def contract(left: Named, right: Named, *over: str) -> Named:
    a, b = _sizes(left), _sizes(right)
    for name in over:
        if name not in a or name not in b:
            raise ValueError(f"missing axis {name}")
    for name in a:
        if b.get(name, a[name]) != a[name]:
            raise ValueError(f"unequal axis {name}")
    ids = {name: i for i, name in enumerate(a | b)}
    out = tuple(name for name in ids if name not in over)
    args = []
    for tensor, names in (left, right):
        args += [tensor, [ids[name] for name in names]]
    return torch.einsum(*args, [ids[name] for name in out]), out


def attend(query: Named, key: Named, value: Named) -> Named:
    if "seq" in query[1]:
        raise ValueError("a query has no axis seq")
    if "seq" not in key[1]:
        raise ValueError("missing axis seq")
    scores, names = contract(query, key, "key")
    scores = scores / _sizes(query)["key"] ** 0.5
    return contract((scores.softmax(names.index("seq")), names), value, "seq")


def multi_head(x: Named, W_q: Named, W_k: Named, W_v: Named, W_o: Named) -> Named:
    q = rename(contract(x, W_q, "chans"), "seq", "query")
    k = contract(x, W_k, "chans")
    v = contract(x, W_v, "chans")
    y = contract(attend(q, k, v), rename(W_o, "chans", "out"), "head", "val")
    return rename(rename(y, "out", "chans"), "query", "seq")
