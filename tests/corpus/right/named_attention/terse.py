"""Named attend, with seq moved to the end for the softmax."""

import torch


def rename(x, old, new):
    return x[0], tuple(new if n == old else n for n in x[1])


def contract(left, right, *over):
    for _, names in (left, right):
        if bad := [n for n in names if names.count(n) > 1] + [n for n in over if n not in names]:
            raise ValueError(f"missing or doubled: {bad[0]}")
    (a, p), (b, q) = left, right
    if bad := [n for n in p if n in q and a.shape[p.index(n)] != b.shape[q.index(n)]]:
        raise ValueError(f"unequal: {bad}")
    every = list(dict.fromkeys(p + q))
    out = tuple(n for n in every if n not in over)
    i, j, k = ([*map(every.index, names)] for names in (p, q, out))
    return torch.einsum(a, i, b, j, k), out


def attend(query, key, value):
    if "seq" in query[1] or "seq" not in key[1]:
        raise ValueError("seq belongs to the key, and not to the query")
    scores, names = contract(query, key, "key")
    scores = scores.movedim(names.index("seq"), -1) * query[0].size(query[1].index("key")) ** -0.5
    rest = tuple(n for n in names if n != "seq")
    return contract((scores.softmax(-1), (*rest, "seq")), value, "seq")


def multi_head(x, W_q, W_k, W_v, W_o):
    q = contract(W_q, rename(x, "seq", "query"), "chans")
    o = attend(q, contract(W_k, x, "chans"), contract(W_v, x, "chans"))
    return rename(contract(o, W_o, "val", "head"), "query", "seq")
