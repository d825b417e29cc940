# mistake: no_scale
r"""# Named attention

Most mistakes in attention are a wrong axis: a transpose too many, a softmax
over the queries, heads where tokens should be. They happen because code calls
axes by their place. If axes have names, the formula says which ones it means,
and the order of the axes in memory no longer matters.

Here a named tensor is a pair: a tensor, and a tuple with the name of each of
its axes, in order.

    Named = tuple[Tensor, tuple[str, ...]]
    (x, ("batch", "seq", "chans"))       x has the shape (batch, seq, chans)

One operation is enough for every sum: multiply two tensors, align the axes
that have the same name, and sum over some of them. Write

    contract(left, right, *over)

    left, right  named tensors
    over         one or more different names of axes that both tensors have
    returns      the product, summed over the axes in over; it has every
                 other axis of both tensors, once

With left (query, key) and right (seq, key), contract(left, right, "key") is
the matrix product left @ right.T: sum over key of left[q, k] * right[s, k]. An
axis such as batch that both have and that is not in `over` stays: the product
is computed for each of its entries. Then write, with `contract`,

    attend(query, key, value)

    query    has the axis key
    key      has the axes key and seq
    value    has the axis seq
    returns  all other axes of the three

    scores  = sum over key of query * key, divided by sqrt(size of key)
    weights = softmax of the scores over seq
    output  = sum over seq of weights * value

    multi_head(x, W_q, W_k, W_v, W_o)

    x         has the axes seq and chans
    W_q, W_k  have the axes head, chans, key
    W_v       has the axes head, chans, val
    W_o       has the axes head, val, chans
    returns   the axes of x

    output = sum over head and val of W_o *
             attend(sum over chans of x * W_q, ... W_k, ... W_v)

The names mean: seq, the tokens that are attended to; key, the numbers of one
query or key; val, the numbers of one value; chans, the numbers of one token.
In multi_head, each token is also a query. The axis of the queries needs a name
of its own, because attention sums over seq: call it query, and rename it back
at the end. `rename` is given.

Requirements
  - The axes of an argument may be in any order, and the result means the same.
    The axes of your result may be in any order, too: its names say which is
    which.
  - The three in `attend`, and x in `multi_head`, may have further axes with
    any other names: none, batch, or several. The axes need not be in all of
    them: queries without batch are used for every batch item. The value does
    not have the axis key, and x has none of head, key, val and query.
  - Axes of size 1 are ordinary axes. No axis has size 0.
  - These are refused: the function raises ValueError, and the message has the
    name of the axis in it.
      missing   a tensor of a product lacks an axis that is summed over, or the
                key of `attend` lacks seq
      doubled   a tensor has an axis twice; if it is seq in the x of
                `multi_head`, the message may also say query
      unequal   an axis has different sizes in two tensors that are multiplied,
                also if one of the sizes is 1
      seq       the query of `attend` has the axis seq
    Other arguments need not be refused, such as a W_q without head.
  - Scores of any size, such as 1e4, give finite results, if the sums over key
    are finite before they are divided.
  - The tensors of a call have one floating dtype, which may be half precision.
    The result has it, too. They may be views, such as transposed tensors, and
    are not modified.
  - Gradients reach all tensors.
  - No Python loop runs over the entries of an axis. A loop over names is fine.

Example

    query = ([[1, 0, 1],                 ("query", "key")
              [0, 2, 0]])
    key   = ([[1, 0, 1],                 ("seq", "key")
              [0, 1, 1]])
    value = ([[1, 3, 0],                 ("seq", "val")
              [2, 4, 1]])

    contract(query, key, "key")          ("query", "seq")
        2       1
        0       2

    divided by sqrt(3), softmax over seq
        0.6405  0.3595
        0.2396  0.7604

    attend(query, key, value)         ("query", "val")
        1.3595  3.3595  0.3595
        1.7604  3.7604  0.7604

The same call with the transpose of key and the names ("key", "seq") gives the
same numbers.

Write it by hand. These names of torch are not accepted here:
scaled_dot_product, MultiheadAttention, multi_head_attention, Transformer,
transformer, nn.attention.

What is new: Axes get names, and no line depends on their order.

From: Named Tensor Notation (2021)
"""

import math

import torch
from torch import Tensor

Named = tuple[Tensor, tuple[str, ...]]  # a tensor and the name of each of its axes, in order


def rename(x: Named, old: str, new: str) -> Named:
    """Return `x` with its axis `old` called `new`."""
    tensor, names = x
    return tensor, tuple(new if name == old else name for name in names)


def sizes(x: Named) -> dict[str, int]:
    """Return the size of each axis by name, and refuse names that occur twice."""
    tensor, names = x
    table: dict[str, int] = {}
    for name, size in zip(names, tensor.shape):
        if name in table:
            raise ValueError(f"doubled axis {name}")
        table[name] = size
    return table


def align(x: Named, order: list[str]) -> Tensor:
    """Return the tensor with its axes in this order, and an axis of size 1 for each that it lacks."""
    tensor, names = x
    have = [name for name in order if name in names]
    tensor = tensor.permute([names.index(name) for name in have])
    for place, name in enumerate(order):
        if name not in names:
            tensor = tensor.unsqueeze(place)
    return tensor


def contract(left: Named, right: Named, *over: str) -> Named:
    """Return the product of two named tensors, summed over the axes `over`."""
    a, b = sizes(left), sizes(right)
    for name in over:
        for table in (a, b):
            if name not in table:
                raise ValueError(f"missing axis {name}")
    for name in a.keys() & b.keys():
        if a[name] != b[name]:
            raise ValueError(f"axis {name} has the sizes {a[name]} and {b[name]}")

    order = list(a) + [name for name in b if name not in a]
    product = align(left, order) * align(right, order)
    total = product.sum(dim=[order.index(name) for name in over])
    return total, tuple(name for name in order if name not in over)


def attend(query: Named, key: Named, value: Named) -> Named:
    """Return the values weighted by softmax(query · key / sqrt(d_key)) over the axis `seq`."""
    if "seq" in query[1]:
        raise ValueError("query has the axis seq")
    if "seq" not in key[1]:
        raise ValueError("key lacks the axis seq")
    scores, names = contract(query, key, "key")
    weights = torch.softmax(scores, dim=names.index("seq"))
    return contract((weights, names), value, "seq")


def multi_head(x: Named, W_q: Named, W_k: Named, W_v: Named, W_o: Named) -> Named:
    """Return multi-head self-attention on the tokens of `x`, with the axes of `x`."""
    tokens = rename(x, "seq", "query")
    q = contract(tokens, W_q, "chans")
    k = contract(x, W_k, "chans")
    v = contract(x, W_v, "chans")
    heads = attend(q, k, v)
    return rename(contract(heads, W_o, "head", "val"), "query", "seq")
