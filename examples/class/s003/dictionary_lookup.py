r"""# Dictionary lookup

A Python dictionary compares a query with its keys, finds the one that is
equal, and returns its value. Attention does the same, softly: it scores how
well each key matches the query, turns the scores into weights that sum to 1,
and returns the blend of all values.

    scores  = Q K^T
    weights = softmax(scores / temp)    over the keys
    output  = weights V

A small `temp` sharpens the weights, a large one evens them out. With one-hot
keys and a small temp the blend is a single value: the dictionary is back.

Write

    attention(Q, K, V, temp=1.0)

    Q        (..., n_queries, d_key)    any floating dtype
    K        (..., n_keys, d_key)
    V        (..., n_keys, d_value)
    returns  (..., n_queries, d_value)  dtype of Q, K and V

    lookup(entries, key, temp=0.01)

    entries  a dict from int keys to lists of numbers, all of one length
    key      the key to look up
    returns  (d_value,)                 float32

`lookup` is attention with one query: each entry gets a one-hot key, the query
is the one-hot vector of the wanted entry, and the lists are the values. The
numbers in `entries` may be ints or floats.

At the edges
  - The leading axes ... are the same in Q, K and V; there may be none, one or
    several. Inputs may be views, such as transposed tensors.
  - temp near 0 picks the value of the best key, a huge temp gives the mean of
    all values.
  - A temp of 0 or below is a ValueError, in both functions.
  - Scores of any size, such as 1e4 or -1e4, give finite results.
  - Reordering K and V together changes nothing.
  - The keys in `entries` may be any ints, such as 40 or -3, in any order. A
    key that is not there is a KeyError.
  - Gradients reach Q, K and V. None of the three is written into.
  - No Python loop over batch, queries or keys in `attention`.

Example

    entries = {0: [2, 3], 1: [5, 7], 2: [3, 2]}
    lookup(entries, 1)            = tensor([5., 7.])
    lookup(entries, 1, temp=1.0)  = tensor([3.9403, 5.0925])

The two defaults differ for a reason. With temp 1 the scores 0, 1, 0 give the
weights 0.2119, 0.5761, 0.2119, and the lookup is a blend; with 0.01 it is as
good as exact. `attention` starts from temp 1, the plain softmax:

    Q = tensor([[0.4685, 0.9785]])
    K = tensor([[0.5539, 0.7239], [0.4111, 0.3878], [0.2376, 0.1264]])
    scores  = tensor([[0.9678, 0.5721, 0.2350]])
    weights = tensor([[0.4643, 0.3126, 0.2231]])

With the identity matrix as V, the output is the weights themselves.

Write it by hand. Of torch, these are not accepted here: scaled_dot_product,
MultiheadAttention, multi_head_attention, transformer, Transformer,
nn.attention.
"""

import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    """Blend the values by how well their keys match each query: softmax(Q Kᵀ / temp) V.

    Q is (..., n_queries, d_key), K is (..., n_keys, d_key), V is (..., n_keys, d_value).
    Returns (..., n_queries, d_value). Raises ValueError for a temp that is not positive.
    """
    raise NotImplementedError("fill in dictionary_lookup")


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    """The value stored under `key`, found by attention over one-hot keys.

    Returns (d_value,), float32. Raises KeyError for a key that is not in `entries`.
    """
    raise NotImplementedError("fill in dictionary_lookup")
