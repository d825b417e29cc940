r"""# Bilinear attention

A learned matrix M between a query and a key makes a product of two vectors of
different sizes: M takes the query into the space of the keys.

    score(q, k) = q . M k / sqrt(d_key)
    weights     = softmax of the scores over the valid keys
    output      = weights @ values

Write

    BilinearAttention(d_query, d_key, dropout)

    queries     (batch, n_queries, d_query)
    keys        (batch, n_keys, d_key)
    values      (batch, n_keys, d_value)
    valid_lens  None, (batch,) or (batch, n_queries), as in masked_softmax,
                from 0 to n_keys
    returns     (batch, n_queries, d_value)   dtype of the inputs

and its only parameter

    M           (d_query, d_key)

with any numbers to start from.

The weights come from your masked_softmax, which the file imports: finish it
first.

Requirements
  - n_queries, n_keys and all sizes of vectors may differ, or be 1. Only the
    batch and n_keys must fit.
  - valid_lens says how many keys a query may attend to. What stands in the
    other keys and values has no effect, as long as it is finite and nothing
    overflows. A query with length 0 has the output zeros, and gradients stay
    finite.
  - After a call, attention_weights holds its weights, before dropout and
    detached or not: (batch, n_queries, n_keys).
  - Dropout acts on the weights, in training mode only: each weight becomes 0
    with the probability dropout, from 0 to 1, or is divided by 1 - dropout.
  - Gradients reach the inputs and M.
  - The inputs have the dtype of the module: float32, or another one after a
    call such as module.to(torch.bfloat16).
  - The inputs are not modified, and may be views, such as transposed tensors.
  - No Python loop runs over batch, queries or keys.

Example

    M       = [[1., 0., 2., 0.], [0., 1., 0., -1.]]
    queries = [[[1., 2.]]]
    keys    = [[[1., 0., 0., 0.], [0., 1., 1., 0.], [0., 0., 0., 1.]]]
    values  = [[[1., 0.], [0., 1.], [5., 5.]]]

    scores  = [[[0.5, 2.0, -1.0]]]
    weights = [[[0.1753, 0.7856, 0.0391]]]
    output  = [[[0.3709, 0.9812]]]

    with valid_lens = [2]
    weights = [[[0.1824, 0.8176, 0.0000]]]
    output  = [[[0.1824, 0.8176]]]

Write it by hand. These names of torch are not accepted here:
scaled_dot_product_attention, MultiheadAttention,
multi_head_attention_forward, bilinear, Bilinear.

What is new: A learned matrix between query and key: the smallest score with
parameters.

From: Effective Approaches to Attention-based Neural Machine Translation
(2015)
"""

import math

import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


class BilinearAttention(nn.Module):
    """Attention whose scores are q . M k / sqrt(d_key)."""

    def __init__(self, d_query: int, d_key: int, dropout: float):
        super().__init__()
        raise NotImplementedError("fill in bilinear_attention")

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, valid_lens: Tensor | None = None
    ) -> Tensor:
        """Return the weighted mean of the values for each query.

        queries     (batch, n_queries, d_query)
        keys        (batch, n_keys, d_key)
        values      (batch, n_keys, d_value)
        valid_lens  None, (batch,) or (batch, n_queries)
        returns     (batch, n_queries, d_value)
        """
        raise NotImplementedError("fill in bilinear_attention")
