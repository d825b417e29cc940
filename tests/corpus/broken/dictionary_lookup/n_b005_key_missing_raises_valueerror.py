# promise: A key that is missing raises ValueError (from list.index), not KeyError.
r"""# Dictionary lookup

A Python dictionary compares a query with its keys, finds the one that is
equal, and returns its value. Attention is a soft version of this: it scores
how well each key matches the query, turns the scores into weights that sum to
1, and returns a weighted sum of all values.

    scores  = Q K^T
    weights = softmax(scores / temp)    over the keys
    output  = weights V

A small `temp` makes the weights sharper, a large one makes them more even.
With one-hot keys and a small temp, the weighted sum is a single value, as in a
dictionary.

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
is the one-hot vector of the requested entry, and the lists are the values. The
numbers in `entries` may be ints or floats.

Requirements
  - The leading axes ... are the same in Q, K and V; there may be none, one or
    several. Inputs may be views, such as transposed tensors.
  - A temp near 0 picks the value of the best key. A huge temp gives the mean
    of all values.
  - Both functions refuse a temp of 0 or below: they raise ValueError.
  - Scores of any size, such as 1e4 or -1e4, give finite results.
  - Reordering K and V together does not change the output.
  - The keys in `entries` may be any ints, such as 40 or -3, in any order. A
    key that is not in `entries` raises KeyError.
  - Gradients reach Q, K and V. Neither these three nor `entries` are modified.
  - No Python loop in `attention` runs over batch, queries or keys.

Example

    entries = {0: [2, 3], 1: [5, 7], 2: [3, 2]}
    lookup(entries, 1)            = tensor([5., 7.])
    lookup(entries, 1, temp=1.0)  = tensor([3.9403, 5.0925])

The two functions have different defaults for a reason. With temp 1, the scores
0, 1, 0 give the weights 0.2119, 0.5761, 0.2119, so the lookup mixes all
values. With temp 0.01, it is practically exact. The default of `attention` is
temp 1, which is the plain softmax:

    Q = tensor([[0.4685, 0.9785]])
    K = tensor([[0.5539, 0.7239], [0.4111, 0.3878], [0.2376, 0.1264]])
    scores  = tensor([[0.9678, 0.5721, 0.2350]])
    weights = tensor([[0.4643, 0.3126, 0.2231]])

If V is the identity matrix, the output equals the weights.

Write it by hand. These names of torch are not accepted here:
scaled_dot_product, MultiheadAttention, multi_head_attention, transformer,
Transformer, nn.attention.

What is new: A look-up that blends: every value counts by how well its key
fits.

From: Neural Turing Machines (2014)
"""

import torch
from torch import Tensor


def attention(Q: Tensor, K: Tensor, V: Tensor, temp: float = 1.0) -> Tensor:
    """Return the values weighted by how well their keys match each query: softmax(Q Kᵀ / temp) V.

    Q is (..., n_queries, d_key), K is (..., n_keys, d_key), V is (..., n_keys, d_value).
    The output is (..., n_queries, d_value). Raises ValueError for a temp that is not positive.
    """
    if temp <= 0:
        raise ValueError(f"temp must be above 0, not {temp}")
    scores = Q @ K.mT
    scores = scores - scores.amax(dim=-1, keepdim=True)
    return torch.softmax(scores / temp, dim=-1) @ V


def lookup(entries: dict[int, list[float]], key: int, temp: float = 0.01) -> Tensor:
    """Return the value stored under `key`, found by attention over one-hot keys."""
    all_keys = list(entries.keys())
    which = all_keys.index(key)
    K = torch.eye(len(all_keys))
    V = torch.tensor([entries[k] for k in all_keys], dtype=torch.float32)
    return attention(K[which : which + 1], K, V, temp)[0]
