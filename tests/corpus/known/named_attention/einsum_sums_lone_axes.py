# mistake: missing_axis_accepted
# an axis that is summed over but is in one of the two tensors only is silently summed instead of refused
import math
import string

import torch
from torch import Tensor

Named = tuple[Tensor, tuple[str, ...]]


def rename(x: Named, old: str, new: str) -> Named:
    tensor, names = x
    return tensor, tuple(new if name == old else name for name in names)


def contract(left: Named, right: Named, *over: str) -> Named:
    (a, a_names), (b, b_names) = left, right
    for names in (a_names, b_names):
        if len(set(names)) < len(names):
            twice = next(n for n in names if names.count(n) > 1)
            raise ValueError(f"{twice} is there twice")
    for n in set(a_names) & set(b_names):
        if a.shape[a_names.index(n)] != b.shape[b_names.index(n)]:
            raise ValueError(f"{n} has different sizes")
    letters = {}
    for n in a_names + b_names:
        letters.setdefault(n, string.ascii_letters[len(letters)])
    out = tuple(n for n in letters if n not in over)
    spec = "{},{}->{}".format(*("".join(letters[n] for n in ns) for ns in (a_names, b_names, out)))
    return torch.einsum(spec, a, b), out


def attend(query: Named, key: Named, value: Named) -> Named:
    if "seq" in query[1]:
        raise ValueError("seq may not be an axis of the query")
    if "seq" not in key[1]:
        raise ValueError("key has no axis seq")
    scores, names = contract(query, key, "key")
    size = key[0].shape[key[1].index("key")] if "key" in key[1] else 1
    weights = torch.softmax(scores / math.sqrt(size), names.index("seq")), names
    return contract(weights, value, "seq")


def multi_head(x: Named, W_q: Named, W_k: Named, W_v: Named, W_o: Named) -> Named:
    q = contract(rename(x, "seq", "query"), W_q, "chans")
    k, v = contract(x, W_k, "chans"), contract(x, W_v, "chans")
    return rename(contract(attend(q, k, v), W_o, "head", "val"), "query", "seq")
