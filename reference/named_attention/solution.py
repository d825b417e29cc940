"""Reference solution: attention over named axes, with one named product for every sum."""

import math

import torch
from torch import Tensor

Named = tuple[Tensor, tuple[str, ...]]  # a tensor and the name of each of its axes, in order


def rename(x: Named, old: str, new: str) -> Named:
    """Return `x` with its axis `old` called `new`."""
    tensor, names = x
    return tensor, tuple(new if name == old else name for name in names)


def contract(left: Named, right: Named, *over: str) -> Named:
    """Return the product of two named tensors, summed over the axes `over`.

    Axes with the same name are aligned. The result has every axis of both but those of `over`.
    Raises ValueError for an axis that is missing, doubled or of two sizes; the message names it.
    """
    # --- solution
    (a, a_names), (b, b_names) = left, right
    for names in (a_names, b_names):
        for name in over:
            if name not in names:
                raise ValueError(f"the axis {name!r} is missing in {names}")
        for name in names:
            if names.count(name) > 1:  # einsum would take the diagonal
                raise ValueError(f"the axis {name!r} is there twice in {names}")
    sizes = dict(zip(a_names, a.shape))
    for name, size in zip(b_names, b.shape):
        if sizes.setdefault(name, size) != size:  # einsum would stretch a size of 1
            raise ValueError(f"the axis {name!r} has the sizes {sizes[name]} and {size}")
    kept = tuple(name for name in sizes if name not in over)
    # einsum takes a number for each axis as well as a letter.
    number = {name: place for place, name in enumerate(sizes)}
    ours, theirs, left_over = ([number[name] for name in each] for each in (a_names, b_names, kept))
    return torch.einsum(a, ours, b, theirs, left_over), kept  # (*kept)
    # --- end


def attend(query: Named, key: Named, value: Named) -> Named:
    """Return the values weighted by softmax(query · key / sqrt(d_key)) over the axis `seq`.

    query has the axis key, key has key and seq, value has seq; further axes are kept.
    Raises ValueError as `contract` does, and for a query with the axis seq.
    """
    # --- solution
    if "seq" in query[1]:  # it would be aligned with the keys': each token sees itself alone
        raise ValueError("the axis 'seq' is in the query; give the query's tokens another name")
    products, names = contract(query, key, "key")
    if "seq" not in names:
        raise ValueError(f"the axis 'seq' is missing in the key, {key[1]}")
    d_key = query[0].shape[query[1].index("key")]
    scores = products / math.sqrt(d_key)  # (*names)
    weights = torch.softmax(scores, dim=names.index("seq"))  # (*names)
    output = contract((weights, names), value, "seq")
    return output
    # --- end


def multi_head(x: Named, W_q: Named, W_k: Named, W_v: Named, W_o: Named) -> Named:
    """Return multi-head self-attention on the tokens of `x`, with the axes of `x`.

    x has seq and chans, W_q and W_k have head, chans and key, W_v has head, chans and val, and
    W_o has head, val and chans. Raises ValueError as `attend` does.
    """
    # --- solution
    queries = rename(contract(x, W_q, "chans"), "seq", "query")
    keys = contract(x, W_k, "chans")
    values = contract(x, W_v, "chans")
    context = attend(queries, keys, values)
    output = contract(context, W_o, "head", "val")
    return rename(output, "query", "seq")
    # --- end
