# mistake: scale_by_the_last_axis
# the scores are divided by the root of the size of the query's last axis, which need not be the axis key
import torch
from torch import Tensor

Named = tuple[Tensor, tuple[str, ...]]


def rename(x: Named, old: str, new: str) -> Named:
    tensor, names = x
    return tensor, tuple(new if name == old else name for name in names)


def check(left: Named, right: Named, over) -> None:
    for _, names in (left, right):
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two axes {name}")
        for name in over:
            if name not in names:
                raise ValueError(f"no axis {name}")
    a = dict(zip(left[1], left[0].shape))
    b = dict(zip(right[1], right[0].shape))
    for name in a.keys() & b.keys():
        if a[name] != b[name]:
            raise ValueError(f"sizes of {name} are {a[name]} and {b[name]}")


def contract(left: Named, right: Named, *over: str) -> Named:
    check(left, right, over)
    names = list(dict.fromkeys(left[1] + right[1]))
    out = [n for n in names if n not in over]
    result = torch.einsum(
        left[0], [names.index(n) for n in left[1]],
        right[0], [names.index(n) for n in right[1]],
        [names.index(n) for n in out],
    )
    return result, tuple(out)


def attend(query: Named, key: Named, value: Named) -> Named:
    if "seq" in query[1] or "seq" not in key[1]:
        raise ValueError("seq has to be in the key and not in the query")
    scores, names = contract(query, key, "key")
    d_key = query[0].shape[-1]
    weights = (scores / d_key**0.5).softmax(names.index("seq"))
    return contract((weights, names), value, "seq")


def multi_head(x: Named, W_q: Named, W_k: Named, W_v: Named, W_o: Named) -> Named:
    queries = contract(rename(x, "seq", "query"), W_q, "chans")
    heads = attend(queries, contract(x, W_k, "chans"), contract(x, W_v, "chans"))
    return rename(contract(heads, W_o, "head", "val"), "query", "seq")
