r"""# Multi-head attention

One softmax gives one weighted sum: a token that should attend to two things
at once gets their mean. Several heads, each with smaller queries, keys and
values, can attend to different things. The heads do not need separate layers:
one projection computes the queries of all heads, and each head takes its slice
of the columns.

    d_head  = d_out / num_heads
    head i  = attention on the columns i*d_head up to (i+1)*d_head (exclusive)
              of W_query(x), W_key(x) and W_value(x), with scores divided by
              sqrt(d_head)
    output  = out_proj(head 0, head 1, ... side by side)

Write the class

    MultiHeadAttention(d_in, d_out, context_length, dropout, num_heads,
                       qkv_bias=False, causal=True)

    forward(x)     x (batch, n_tokens, d_in) -> (batch, n_tokens, d_out)

With causal=True, a token attends to itself and the tokens before it, as in
causal attention. With causal=False, every token attends to all tokens.

Parts
  - W_query, W_key and W_value are nn.Linear layers from d_in to d_out, with a
    bias only if qkv_bias is True; out_proj is an nn.Linear from d_out to d_out
    that always has a bias. There are no other parameters: 3*d_in*d_out +
    d_out^2 + d_out numbers without qkv_bias.
  - The mask is no parameter, and follows the module to another dtype or
    device: it is a buffer (register_buffer), or it is made in forward, where x is.
  - dropout is the rate, from 0 to 1, at which weights are dropped in training;
    the remaining weights are divided by 1 - dropout. Dropout is applied to the weights of
    every head after the softmax and to nothing else. In eval mode nothing is
    dropped.

Requirements
  - If num_heads does not divide d_out, the constructor raises an exception
    such as ValueError.
  - n_tokens may be anything from 1 to context_length. For more tokens, forward
    raises an exception such as ValueError, also if context_length is 1. The
    batch may have any size, and there may be a single head.
  - With causal=True, changing a later token, by any amount, changes no earlier
    output. Scores of any size give finite results.
  - If the module and x have the same dtype, the output has it too, for example
    bfloat16. module.to(dtype) is enough to convert the module.
  - x may be a view, such as a transposed tensor, and is not modified.
  - Gradients reach x and all parameters, in training and in eval mode.
  - No Python loop runs over batch, heads or tokens.

Example

Two heads of size 4 on three tokens. All four layers are the identity, so the
queries, keys and values equal x, and each head gets four of its columns:

    head 0                             head 1
    0.2745  0.6584  0.2775  0.8573     1  0  0  0
    0.8993  0.0390  0.9268  0.7388     0  1  0  0
    0.7179  0.7058  0.9156  0.4340     1  1  0  0

The products of queries and keys, one table per head,

    1.3208  1.1631  1.2879             1  0  1
    1.1631  2.2150  1.8424             0  1  1
    1.2879  1.8424  2.0402             1  1  2

are divided by sqrt(4). With causal=True, the weights are

    1       0       0                  1       0       0
    0.3715  0.6285  0                  0.3775  0.6225  0
    0.2648  0.3494  0.3858             0.2741  0.2741  0.4519

and the output is

    0.2745  0.6584  0.2775  0.8573     1       0       0  0
    0.6672  0.2691  0.6856  0.7828     0.3775  0.6225  0  0
    0.6639  0.4603  0.7505  0.6526     0.7259  0.7259  0  0

Write it by hand. These names of torch are not accepted here:
scaled_dot_product, MultiheadAttention, multi_head_attention, Transformer,
transformer, nn.attention.

What is new: Several heads from one projection, which look for different
things at once.

From: Attention Is All You Need (2017)
"""

import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    """Attention in num_heads independent heads, each on its own d_out // num_heads columns.

    context_length is the largest number of tokens; dropout is the rate at which attention weights
    are dropped; if causal is True, no token attends to later tokens. Raises ValueError if
    num_heads does not divide d_out.
    """

    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        qkv_bias: bool = False,
        causal: bool = True,
    ) -> None:
        super().__init__()
        raise NotImplementedError("fill in multi_head_attention")

    def forward(self, x: Tensor) -> Tensor:
        """Map x (batch, n_tokens, d_in) to (batch, n_tokens, d_out).

        Raises ValueError for more tokens than context_length.
        """
        raise NotImplementedError("fill in multi_head_attention")
