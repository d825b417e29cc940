r"""# Softmax in one pass, attention in tiles

Attention makes a table of n_queries * n_keys scores. For a long text, the
table is what fills the memory, and only its softmax needs all of a row at
once:

    weights[j] = exp(scores[j] - m) / sum over k of exp(scores[k] - m)
    m          = the largest score of the row

It can be had without the whole row. Read the scores in chunks, and keep two
numbers for each row: the largest score so far, and the sum of all
exponentials so far. When a chunk brings a larger score, everything that was
summed with the old maximum is too large, by one factor for the whole row:

    total_new = total_old * exp(m_old - m_new) + sum of exp(chunk - m_new)

The output of attention, sum over j of exp(scores[j] - m) * values[j], is such
a sum, too: the same factor corrects it. Divide by the total at the end. This
is how FlashAttention works.

Write

    online_softmax(chunks, state=None)

    chunks   a list of at least one tensor, (..., n) each; n >= 1 may differ
             from chunk to chunk, and the leading axes are the same
    state    what an earlier call returned; this call goes on from there
    returns  a tuple maximum, total: tensors (...) each, dtype of the chunks

For each row of all chunks joined along the last axis: `maximum` is its largest
score, and `total` is the sum of exp(score - maximum). So the softmax of a
score is exp(score - maximum) / total. With a state, the chunks of the earlier
calls count as if they were the first ones of the list.

    tiled_attention(Q, K, V, tile, causal=False)

    Q        (..., n_queries, d_key)
    K        (..., n_keys, d_key)
    V        (..., n_keys, d_value)
    tile     how many keys a tile has; at least 1, or ValueError
    causal   if True, query i attends to the keys 0 to i only
    returns  (..., n_queries, d_value), dtype of the inputs

What softmax(Q K^T / sqrt(d_key)) V gives, over all keys that a query may
attend to, computed one tile of keys after the other.

Requirements
  - You write the softmax: torch's own softmax in any form, logsumexp and
    attention are not allowed.
  - A score of -inf belongs to a hidden key and counts nothing. While a row has
    only such scores, its maximum is -inf and its total 0. Finite scores may
    follow, in the same call or in a later one.
  - Finite scores of any size, such as 1e4 and -1e4, give right numbers.
  - Any tile size works: a tile that does not divide n_keys, a tile of one key,
    a tile larger than n_keys, which needs no more memory than one of n_keys.
  - Memory: beyond its inputs and its result, online_softmax never holds more
    numbers at once than ten chunks have, however many chunks there are. With
    the same tile, the memory of tiled_attention grows no faster than n_queries
    and n_keys, causal or not: no table of all scores, and no mask for it. A
    smaller tile needs less, as what is computed at once has tile keys. All
    this counts without gradients, which need to keep more.
  - Python loops run over chunks and tiles only: with all keys in one tile, the
    number of tensor operations does not grow with any axis. You may split the
    queries into tiles of the same size, too; then it may grow with theirs.
  - The leading axes ... may be none, one or several. n_queries, n_keys, d_key
    and d_value may differ, or be 1.
  - Gradients of the output reach Q, K and V.
  - maximum + log(total) is the log of the sum of exp(score) over all scores.
    Its gradients reach all chunks, also those of an earlier call, and are the
    right ones. (It does not depend on which maximum was subtracted. If you
    detach the maximum, detach it wherever it is used.) The gradients of total
    are finite in all rows, also in rows with only -inf.
  - The dtype may be float64, float32 or bfloat16. Arguments may be views, such
    as transposed tensors, and are not modified; neither are the tensors of the
    state.

Example

    chunks = [[[1., 3.], [0., 1.]], [[2., 5.], [-1., -2.]], [[4.], [1.]]]

    after chunk   maximum       total
    1             [3, 1]        [1.1353, 1.3679]
    2             [5, 1]        [1.2034, 1.5530]
    3             [5, 1]        [1.5713, 2.5530]

    In the first row, exp(1 - 3) + exp(3 - 3) = 1.1353, and then
    1.1353 * exp(3 - 5) + exp(2 - 5) + exp(5 - 5) = 1.2034.

    Q = [[1., 0.], [0., 2.], [1., 1.]]
    K = [[1., 1.], [2., 0.], [0., 3.]]
    V = [[1., 0.], [0., 1.], [5., 5.]]

    output = [[0.9841, 1.2761], [4.7128, 4.6712], [2.7657, 2.7657]]

    with causal=True
    output = [[1.0000, 0.0000], [0.8044, 0.1956], [2.7657, 2.7657]]

Write it by hand. These names of torch are not accepted here: softmax,
Softmax, Softmin, softmin, logsumexp, logcumsumexp, scaled_dot_product,
MultiheadAttention, multi_head_attention, transformer, Transformer,
nn.attention, flash_attention.

What is new: A running maximum and a running total instead of the table of
all scores.

From: FlashAttention: Fast and Memory-Efficient Exact Attention with IO-
Awareness (2022)
"""

import torch
from torch import Tensor


def online_softmax(
    chunks: list[Tensor], state: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    """Return the maximum and the total of each row of scores, which come in chunks.

    chunks   at least one, (..., n) each, where n may differ
    state    what an earlier call returned, to go on from; None for a fresh start
    returns  maximum and total, (...) each
    """
    raise NotImplementedError("fill in online_softmax")


def tiled_attention(Q: Tensor, K: Tensor, V: Tensor, tile: int, causal: bool = False) -> Tensor:
    """Return softmax(Q Kᵀ / sqrt(d_key)) V, computed for `tile` keys at a time.

    Q        (..., n_queries, d_key)
    K        (..., n_keys, d_key)
    V        (..., n_keys, d_value)
    returns  (..., n_queries, d_value)
    """
    raise NotImplementedError("fill in online_softmax")
