r"""# Additive attention

A dot product needs queries and keys of the same size. Additive attention does
not: a small network with one hidden layer scores each pair of a query q and a
key k.

    score(q, k) = w_v . tanh(W_q q + W_k k)
    weights     = softmax of the scores over the valid keys
    output      = weights @ values

Write

    AdditiveAttention(d_query, d_key, num_hiddens, dropout)

    queries     (batch, n_queries, d_query)
    keys        (batch, n_keys, d_key)
    values      (batch, n_keys, d_value)
    valid_lens  None, (batch,) or (batch, n_queries), as in masked_softmax,
                from 0 to n_keys
    returns     (batch, n_queries, d_value)   dtype of the inputs

and its three linear layers, all without bias:

    W_q.weight  (num_hiddens, d_query)
    W_k.weight  (num_hiddens, d_key)
    w_v.weight  (1, num_hiddens)

What counts is the names and shapes of the parameters. They may start with any
numbers.

The weights come from your masked_softmax, which the file imports: finish it
first.

Requirements
  - n_queries, n_keys and all sizes of vectors may differ, or be 1. Only the
    batch and n_keys must fit. The scores are not scaled.
  - valid_lens says how many keys a query may attend to. What stands in the
    other keys and values has no effect, as long as it is finite and nothing
    overflows. A query with length 0 has the output zeros, and gradients stay
    finite.
  - After a call, attention_weights holds its weights, before dropout and
    detached or not: (batch, n_queries, n_keys).
  - Dropout acts on the weights, in training mode only: each weight becomes 0
    with the probability dropout, from 0 to 1, or is divided by 1 - dropout.
  - Gradients reach the inputs and the three layers.
  - The inputs have the dtype of the module: float32, or another one after a
    call such as module.to(torch.bfloat16).
  - The inputs are not modified, and may be views, such as transposed tensors.
  - No Python loop runs over batch, queries or keys.

Example

    W_q.weight = [[1.], [-1.]]
    W_k.weight = [[1., 0.], [0., 1.]]
    w_v.weight = [[1., 1.]]

    queries = [[[1.], [-2.]]]
    keys    = [[[0., 1.], [1., 0.], [2., 2.]]]
    values  = [[[1., 0.], [0., 1.], [5., 5.]]]

    scores  = [[[0.7616, 0.2024, 1.7566], [0.0310, 0.2024, 0.9993]]]
    weights = [[[0.2338, 0.1337, 0.6325], [0.2074, 0.2462, 0.5463]]]
    output  = [[[3.3963, 3.2961], [2.9390, 2.9778]]]

    with valid_lens = [2]
    weights = [[[0.6363, 0.3637, 0.0000], [0.4573, 0.5427, 0.0000]]]
    output  = [[[0.6363, 0.3637], [0.4573, 0.5427]]]

Write it by hand. These names of torch are not accepted here:
scaled_dot_product_attention, MultiheadAttention,
multi_head_attention_forward.

What is new: Scores from a small network, for queries and keys of different
sizes.

From: Neural Machine Translation by Jointly Learning to Align and Translate
(2014)
"""

import torch
from masked_softmax import masked_softmax
from torch import Tensor, nn


class AdditiveAttention(nn.Module):
    """Attention whose scores are w_v . tanh(W_q q + W_k k)."""

    def __init__(self, d_query: int, d_key: int, num_hiddens: int, dropout: float):
        super().__init__()
        raise NotImplementedError("fill in additive_attention")

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
        raise NotImplementedError("fill in additive_attention")
