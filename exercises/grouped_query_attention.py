r"""# Grouped-query attention

Writing text one token at a time, a model spends most of its time on reading
the cached keys and values of all heads from memory. Grouped-query attention
makes them smaller: num_heads heads of queries share num_kv_heads heads of keys
and values.

    group   = num_heads / num_kv_heads, the heads that share keys and values
    head i  = softmax(queries_i keys_j^T / sqrt(d_head)) values_j, where
              j = i // group: neighbouring heads form a group

With num_kv_heads = num_heads this is multi-head attention, and with
num_kv_heads = 1 it is multi-query attention.

Write two functions and a class. The functions are the two products:

    grouped_scores(queries, keys)

    queries  (batch, num_heads, n_queries, d_head)
    keys     (batch, num_kv_heads, n_keys, d_head)
    returns  (batch, num_heads, n_queries, n_keys), divided by sqrt(d_head)

    grouped_context(weights, values)

    weights  (batch, num_heads, n_queries, n_keys)
    values   (batch, num_kv_heads, n_keys, d_value)
    returns  (batch, num_heads, n_queries, d_value)

Both get all sizes from their arguments. If num_kv_heads does not divide
num_heads, they raise an exception such as ValueError.

They must save the memory that the shared heads are there for: the keys and
values are never copied to num_heads heads. repeat_interleave makes such a
copy, and so does torch itself inside a product with @ that has to expand an
axis of size 1. Give all queries of a group to one product instead.

    GroupedQueryAttention(d_in, d_out, context_length, dropout, num_heads,
                          num_kv_heads)

    forward(x)  x (batch, n_tokens, d_in) -> (batch, n_tokens, d_out)

is causal attention with these products: a token attends to itself and to the
tokens before it.

Parts of the class, where d_head = d_out / num_heads
  - W_query is an nn.Linear layer from d_in to d_out, W_key and W_value are
    nn.Linear layers from d_in to num_kv_heads * d_head, all without a bias.
    Head i of the queries has the columns i*d_head up to (i+1)*d_head
    (exclusive), and head j of the keys and values those of j.
  - out_proj is an nn.Linear layer from d_out to d_out with a bias. It is
    applied to the outputs of all heads, side by side in order. There are no
    other parameters.
  - dropout is the rate, from 0 to 1, at which weights are dropped in training;
    the remaining weights are divided by 1 - dropout. Dropout is applied to the weights of
    every head after the softmax and to nothing else. In eval mode nothing is
    dropped.

Requirements
  - If num_heads does not divide d_out, or num_kv_heads does not divide
    num_heads, the constructor raises an exception such as ValueError. So does
    forward for more tokens than context_length.
  - Changing a later token, by any amount, changes no earlier output. Scores of
    any size give finite results.
  - Every size may be 1.
  - The outputs have the dtype of the inputs and the module, for example
    bfloat16. After a move to another device, everything works there.
  - Inputs may be views, such as transposed tensors, and are not modified.
  - Gradients reach all inputs and parameters, in training and in eval mode.
  - No Python loop runs over batch, heads, queries, keys or tokens.

Example of the two products

Four heads, two of keys and values, one query, two keys, one sentence:

    queries  head 0  [2., 0., 0., 0.]      keys  head 0  [1., 0., 0., 0.]
             head 1  [0., 2., 0., 0.]                    [0., 1., 0., 0.]
             head 2  [0., 0., 2., 0.]            head 1  [0., 0., 1., 0.]
             head 3  [2., 2., 0., 0.]                    [1., 1., 0., 0.]

    grouped_scores, divided by sqrt(4), and their softmax

    head 0   [1., 0.]   [0.7311, 0.2689]   with head 0 of the keys
    head 1   [0., 1.]   [0.2689, 0.7311]   with head 0 of the keys
    head 2   [1., 0.]   [0.7311, 0.2689]   with head 1 of the keys
    head 3   [0., 2.]   [0.1192, 0.8808]   with head 1 of the keys

    values   head 0  [1., 0.]              head 1  [10.,  0.]
                     [0., 1.]                      [ 0., 10.]

    grouped_context of these weights

    head 0   [0.7311, 0.2689]              head 2  [7.3106, 2.6894]
    head 1   [0.2689, 0.7311]              head 3  [1.1920, 8.8080]

Write it by hand. These names of torch are not accepted here:
scaled_dot_product, MultiheadAttention, multi_head_attention, Transformer,
transformer, nn.attention.

What is new: Fewer keys and values than queries, which makes a cache
smaller.

From: GQA: Training Generalized Multi-Query Transformer Models from Multi-
Head Checkpoints (2023)
"""

import torch
from torch import Tensor, nn


def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    """Return the scores of every query head with the keys of its group.

    Queries (batch, num_heads, n_queries, d_head) and keys (batch, num_kv_heads, n_keys, d_head)
    give (batch, num_heads, n_queries, n_keys), divided by sqrt(d_head). Raises ValueError if
    num_kv_heads does not divide num_heads.
    """
    raise NotImplementedError("fill in grouped_query_attention")


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    """Return the values of every head's group, added up with the weights of the head.

    Weights (batch, num_heads, n_queries, n_keys) and values (batch, num_kv_heads, n_keys, d_value)
    give (batch, num_heads, n_queries, d_value). Raises ValueError if num_kv_heads does not divide
    num_heads.
    """
    raise NotImplementedError("fill in grouped_query_attention")


class GroupedQueryAttention(nn.Module):
    """Causal attention with num_heads heads of queries and num_kv_heads heads of keys and values.

    context_length is the largest number of tokens; dropout is the rate at which attention weights
    are dropped. Raises ValueError if num_heads does not divide d_out, or num_kv_heads num_heads.
    """

    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        num_kv_heads: int,
    ) -> None:
        super().__init__()
        raise NotImplementedError("fill in grouped_query_attention")

    def forward(self, x: Tensor) -> Tensor:
        """Map x (batch, n_tokens, d_in) to (batch, n_tokens, d_out).

        Raises ValueError for more tokens than context_length.
        """
        raise NotImplementedError("fill in grouped_query_attention")
