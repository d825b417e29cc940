r"""# A cache of keys and values

A model that writes text computes one token at a time. The keys and values of
the earlier tokens do not change any more, as no token attends to later ones.
So they are computed once and kept: with n tokens in the cache, the next one
needs n + 1 products of a query and a key, not (n + 1)^2.

CachedAttention computes causal multi-head attention over a sequence that comes
in chunks of one or more tokens:

    output, cache = attention(x_1)           the first tokens of the sequence
    output, cache = attention(x_2, cache)    the tokens after them
    ...

The outputs of all chunks, one after the other, are those of the whole sequence
in one call. That call, without a cache, gives what MultiHeadAttention with
causal=True gives with the same parameters.

    queries = W_query(x), of the tokens in x only
    keys    = the keys in the cache, then W_key(x)
    values  = the values in the cache, then W_value(x)
    head i  = softmax(queries_i keys_i^T / sqrt(d_head)) values_i, where a token
              attends to itself and to all tokens before it, in x and the cache
    output  = out_proj(head 0, head 1, ... side by side)

The constructor is given. Its layers and arguments are those of
MultiHeadAttention; head i has the columns i*d_head up to (i+1)*d_head
(exclusive), d_head = d_out / num_heads. Write

    forward(x, cache=None)

    x        (batch, n_tokens, d_in), the next tokens
    cache    None before the first token, or the cache of an earlier call
    returns  the pair (output, cache)
             output  (batch, n_tokens, d_out)
             cache   the pair (keys, values) of all tokens so far, in order:
                     (batch, num_heads, n_cached + n_tokens, d_head) each,
                     keys and values as W_key and W_value give them

Requirements
  - n_tokens is at least 1. If n_cached + n_tokens is more than context_length,
    forward raises an exception such as ValueError.
  - The module itself keeps nothing: without a cache, a new sequence begins.
    The cache that is passed in is not modified, and may be used again, for
    another continuation. The sentences of a batch are independent.
  - Changing a later token, by any amount, changes no earlier output. Scores of
    any size give finite results.
  - For one new token, the work grows with the number of cached tokens, not
    with its square: no tensor with n_cached^2 numbers is made.
  - dropout is the rate, from 0 to 1, at which weights are dropped in training;
    the remaining weights are divided by 1 - dropout. Dropout is applied to the weights after
    the softmax and to nothing else. In eval mode nothing is dropped.
  - Gradients reach x and all parameters, with a cache and without, in training
    and in eval mode. The cache may be detached or not.
  - The output and the cache have the dtype of the module and x, for example
    bfloat16. After a move to another device, everything works there.
  - x and the cache may be views, such as transposed tensors. x is not modified.
  - No Python loop runs over batch, heads or tokens.

Example

Two heads of size 2, three tokens, and the identity in all four layers, so that
queries, keys and values are the columns of x: the first two are head 0.

    x_1 = [[1., 0., 2., 0.],     output = [[1.0000, 0.0000, 2.0000, 0.0000],
           [0., 2., 1., 1.]]               [0.0558, 1.8884, 1.5000, 0.5000]]

The cache now has two tokens. Both its tensors, the keys and the values, are

    head 0  [[1., 0.], [0., 2.]]           head 1  [[2., 0.], [1., 1.]]

The third token makes two rows of three products, one row for each head:

    x_2 = [[1., 1., 0., 2.]]

    products  [1., 2., 2.]                 [0., 2., 4.]
    weights   [0.1978, 0.4011, 0.4011]     [0.0454, 0.1867, 0.7679]

    output = [[0.5989, 1.2033, 0.2775, 1.7225]]

Write it by hand. These names of torch are not accepted here:
scaled_dot_product, MultiheadAttention, multi_head_attention, Transformer,
transformer, nn.attention.

What is new: What makes writing text fast: earlier keys and values are kept,
not computed again.

From: Fast Transformer Decoding: One Write-Head is All You Need (2019)
"""

import torch
from torch import Tensor, nn

Cache = tuple[Tensor, Tensor]  # keys and values, (batch, num_heads, n_cached, d_head) each


class CachedAttention(nn.Module):
    """Causal multi-head attention over a sequence that arrives in chunks.

    context_length is the largest number of tokens, those in the cache included; dropout is the
    rate at which attention weights are dropped. Raises ValueError if num_heads does not divide
    d_out.
    """

    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        qkv_bias: bool = False,
    ) -> None:
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"{num_heads} heads do not divide d_out = {d_out}")
        self.context_length = context_length
        self.num_heads = num_heads
        self.d_head = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, cache: Cache | None = None) -> tuple[Tensor, Cache]:
        """Map the next tokens x (batch, n_tokens, d_in) to (batch, n_tokens, d_out) and a cache.

        Raises ValueError for more tokens than context_length, those in the cache included.
        """
        raise NotImplementedError("fill in kv_cache")
