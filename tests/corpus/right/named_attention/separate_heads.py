"""Named attend: axes are aligned by permuting, products are broadcast and summed in float64."""

import torch


def rename(x, old, new):
    tensor, names = x
    return tensor, tuple(new if name == old else name for name in names)


def aligned(x, names):
    """The tensor with one axis for each of `names`, of size 1 where it has none."""
    tensor, own = x
    sizes = dict(zip(own, tensor.shape))
    ordered = tensor.permute([own.index(name) for name in names if name in own])
    return ordered.reshape([sizes.get(name, 1) for name in names])


def contract(left, right, *over):
    sizes = {}
    for tensor, names in (left, right):
        for name in names:
            if list(names).count(name) > 1:
                raise ValueError("doubled: " + name)
        for name in over:
            if name not in names:
                raise ValueError("missing: " + name)
        for name, size in zip(names, tensor.shape):
            if sizes.get(name, size) != size:
                raise ValueError("unequal: " + name)
            sizes[name] = size
    product = aligned(left, list(sizes)).double() * aligned(right, list(sizes)).double()
    total = product.sum([list(sizes).index(name) for name in over])
    return total.to(left[0].dtype), tuple(name for name in sizes if name not in over)


def attend(query, key, value):
    for x, needed in ((query, ["key"]), (key, ["key", "seq"]), (value, ["seq"])):
        for name in needed:
            if name not in x[1]:
                raise ValueError("missing: " + name)
    if "seq" in query[1]:
        raise ValueError("the query has the axis seq")
    scores, names = contract(query, key, "key")
    scaled = scores.double() / query[0].size(query[1].index("key")) ** 0.5
    weights = torch.softmax(scaled, names.index("seq")).to(scores.dtype)
    return contract(value, (weights, names), "seq")


def multi_head(x, W_q, W_k, W_v, W_o):
    q, k, v = (contract(W, x, "chans") for W in (W_q, W_k, W_v))
    heads = attend(rename(q, "seq", "query"), k, v)
    return rename(contract(heads, W_o, "head", "val"), "query", "seq")
