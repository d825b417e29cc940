# mistake: the einsum uses the first letter of each name, so two further axes with the same first letter (batch, beam) are taken as one
import math

import torch
from torch import Tensor

Named = tuple[Tensor, tuple[str, ...]]


def rename(x: Named, old: str, new: str) -> Named:
    tensor, names = x
    return tensor, tuple(new if name == old else name for name in names)


def contract(left: Named, right: Named, *over: str) -> Named:
    for tensor, names in (left, right):
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"doubled: {name}")
        for name in over:
            if name not in names:
                raise ValueError(f"missing: {name}")
    for name, n in zip(left[1], left[0].shape):
        if name in right[1] and right[0].shape[right[1].index(name)] != n:
            raise ValueError(f"unequal: {name}")
    out = [n for n in left[1] if n not in over]
    out += [n for n in right[1] if n not in over and n not in left[1]]
    short = lambda names: "".join(n[0] for n in names)  # query -> q, seq -> s, key -> k
    return torch.einsum(f"{short(left[1])},{short(right[1])}->{short(out)}", left[0], right[0]), tuple(out)


def attend(query: Named, key: Named, value: Named) -> Named:
    if "seq" in query[1]:
        raise ValueError("seq in query")
    if "seq" not in key[1]:
        raise ValueError("no seq in key")
    scores, names = contract(query, key, "key")
    d_key = key[0].shape[key[1].index("key")]
    scores = scores / math.sqrt(d_key)
    return contract((torch.softmax(scores, names.index("seq")), names), value, "seq")


def multi_head(x: Named, W_q: Named, W_k: Named, W_v: Named, W_o: Named) -> Named:
    q = contract(rename(x, "seq", "query"), W_q, "chans")
    k = contract(x, W_k, "chans")
    v = contract(x, W_v, "chans")
    return rename(contract(attend(q, k, v), W_o, "head", "val"), "query", "seq")
