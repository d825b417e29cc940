"""Named attend: names become letters of an einsum; the softmax is written out."""

from string import ascii_lowercase

import torch


def need(x, *names):
    for name in names:
        assert name in x[1], f"there is no axis {name}"


def check(*tensors):
    sizes = {}
    for tensor, names in tensors:
        for name, size in zip(names, tensor.shape):
            assert list(names).count(name) == 1, f"{name} occurs twice"
            assert sizes.setdefault(name, size) == size, f"{name} is {sizes[name]} and {size}"
    return sizes


def contract(left, right, *over):
    names = check(left, right)
    need(left, *over)
    need(right, *over)
    letter = dict(zip(names, ascii_lowercase))
    out = sorted(name for name in names if name not in over)
    a, b, c = ("".join(letter[name] for name in each) for each in (left[1], right[1], out))
    return [torch.einsum(f"{a},{b}->{c}", left[0], right[0]), out]


def rename(x, old, new):
    return x[0], [new if name == old else name for name in x[1]]


def attend(query, key, value):
    need(query, "key")
    need(key, "seq")
    if "seq" in query[1]:
        raise RuntimeError("the query may not have the axis seq")
    d_key = check(query)["key"]
    scores, names = contract((query[0] * d_key**-0.5, query[1]), key, "key")
    seq = names.index("seq")
    weights = (scores - scores.amax(seq, keepdim=True)).exp()
    return contract((weights / weights.sum(seq, keepdim=True), names), value, "seq")


def multi_head(x, W_q, W_k, W_v, W_o):
    need(x, "seq", "chans")
    queries = contract(rename(x, "seq", "query"), W_q, "chans")
    heads = attend(queries, contract(x, W_k, "chans"), contract(x, W_v, "chans"))
    return rename(contract(W_o, heads, "val", "head"), "query", "seq")
