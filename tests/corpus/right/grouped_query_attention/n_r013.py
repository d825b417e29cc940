# style: unusual
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
  - dropout is the rate at which weights are dropped in training; the remaining
    weights are divided by 1 - dropout. Dropout is applied to the weights of
    every head after the softmax and to nothing else. In eval mode nothing is
    dropped.

Requirements
  - If num_heads does not divide d_out, or num_kv_heads does not divide
    num_heads, the constructor raises an exception such as ValueError. So does
    forward for more tokens than context_length.
  - Changing a later token, by any amount, changes no earlier output.
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

import math

import torch
from torch import Tensor, nn


def _group_size(num_heads: int, num_kv_heads: int) -> int:
    if num_heads % num_kv_heads != 0:
        raise ValueError(f"{num_kv_heads} key/value heads do not divide {num_heads} heads")
    return num_heads // num_kv_heads


def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    """Return the scores of every query head with the keys of its group."""
    batch, num_heads, n_queries, d_head = queries.shape
    num_kv_heads, n_keys = keys.shape[1], keys.shape[2]
    group = _group_size(num_heads, num_kv_heads)
    # all queries of a group, one below the other
    stacked = queries.reshape(batch, num_kv_heads, group * n_queries, d_head)
    scores = stacked @ keys.transpose(-2, -1) / math.sqrt(d_head)
    return scores.reshape(batch, num_heads, n_queries, n_keys)


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    """Return the values of every head's group, added up with the weights of the head."""
    batch, num_heads, n_queries, n_keys = weights.shape
    num_kv_heads, d_value = values.shape[1], values.shape[3]
    group = _group_size(num_heads, num_kv_heads)
    stacked = weights.reshape(batch, num_kv_heads, group * n_queries, n_keys)
    return (stacked @ values).reshape(batch, num_heads, n_queries, d_value)


class GroupedQueryAttention(nn.Module):
    """Causal attention with num_heads heads of queries and num_kv_heads heads of keys and values."""

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
        if d_out % num_heads != 0:
            raise ValueError(f"{num_heads} heads do not divide d_out = {d_out}")
        _group_size(num_heads, num_kv_heads)
        self.context_length = context_length
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads
        self.d_head = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Map x (batch, n_tokens, d_in) to (batch, n_tokens, d_out)."""
        batch, n_tokens, _ = x.shape
        if n_tokens > self.context_length:
            raise ValueError(f"{n_tokens} tokens are more than {self.context_length}")
        queries = self.W_query(x).view(batch, n_tokens, self.num_heads, self.d_head).transpose(1, 2)
        keys = self.W_key(x).view(batch, n_tokens, self.num_kv_heads, self.d_head).transpose(1, 2)
        values = self.W_value(x).view(batch, n_tokens, self.num_kv_heads, self.d_head).transpose(1, 2)

        scores = grouped_scores(queries, keys)
        future = torch.ones(n_tokens, n_tokens, dtype=torch.bool, device=x.device).triu(diagonal=1)
        scores = scores.masked_fill(future, float("-inf"))
        weights = self.dropout(torch.softmax(scores, dim=-1))

        context = grouped_context(weights, values)
        context = context.transpose(1, 2).reshape(batch, n_tokens, -1)
        return self.out_proj(context)
