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
        twice = [n for n in names if names.count(n) > 1]
        if twice:
            raise ValueError(f"axis {twice[0]} is doubled")
        for n in over:
            if n not in names:
                raise ValueError(f"axis {n} is missing: there are only {names}")
    a_size, b_size = dict(zip(a_names, a.shape)), dict(zip(b_names, b.shape))
    for n in a_size.keys() & b_size.keys():
        if a_size[n] != b_size[n]:
            raise ValueError(f"axis {n} has the sizes {a_size[n]} and {b_size[n]}")

    everything = list(dict.fromkeys(a_names + b_names))
    letter = dict(zip(everything, string.ascii_letters, strict=False))
    kept = tuple(n for n in everything if n not in over)
    spell = lambda names: "".join(letter[n] for n in names)
    return torch.einsum(f"{spell(a_names)},{spell(b_names)}->{spell(kept)}", a, b), kept


def attend(query: Named, key: Named, value: Named) -> Named:
    if "seq" in query[1]:
        raise ValueError("the query must not have the axis seq")
    if "seq" not in key[1]:
        raise ValueError("the key lacks the axis seq")
    scores, names = contract(query, key, "key")
    d_key = key[0].shape[key[1].index("key")]
    weights = torch.softmax(scores / math.sqrt(d_key), dim=names.index("seq"))
    return contract((weights, names), value, "seq")


def multi_head(x: Named, W_q: Named, W_k: Named, W_v: Named, W_o: Named) -> Named:
    query = contract(rename(x, "seq", "query"), W_q, "chans")
    key = contract(x, W_k, "chans")
    value = contract(x, W_v, "chans")
    heads = attend(query, key, value)
    return rename(contract(heads, W_o, "head", "val"), "query", "seq")
