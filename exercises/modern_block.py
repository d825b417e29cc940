r"""# The block of today's models

LLaMA's block is a pre-norm Transformer block of newer parts: RMS norm, SwiGLU,
rotary positions, and fewer heads of keys and values than of queries. It keeps
a cache, so that text can be written one token at a time. RMSNorm and SwiGLU are
yours: import them. The attention you write here, rotation included.

    queries, keys, values = W_query(x), W_key(x), W_value(x), split into heads
    queries, keys         = each pair of columns turned by its token's position
    keys, values          = those of the cache, then those of x
    head h                = softmax(queries_h keys_g^T / sqrt(d_head)) values_g,
                            g = h // (num_heads / num_kv_heads); causal
    output                = out_proj(head 0, head 1, ... side by side)

The token at position p of the sequence, counted from 0, turns the columns 2i
and 2i + 1 of each head, (a, b), by the angle t = p / base^(2i / d_head):

    (a, b)  ->  (a cos t - b sin t, a sin t + b cos t)

Write

    RotaryAttention(d_in, d_out, context_length, dropout, num_heads,
                    num_kv_heads, base=10000.0)

    W_query   nn.Linear   d_in -> d_out
    W_key     nn.Linear   d_in -> num_kv_heads * d_head,  d_head = d_out/num_heads
    W_value   nn.Linear   d_in -> num_kv_heads * d_head
    out_proj  nn.Linear   d_out -> d_out

    ModernBlock(d_model, num_heads, num_kv_heads, d_ff, context_length,
                dropout=0.0, base=10000.0)

    norm1, norm2   RMSNorm(d_model)
    attention      RotaryAttention from d_model to d_model
    feed_forward   SwiGLU(d_model, d_ff, dropout)

    h = x + attention(norm1(x)),   output = h + feed_forward(norm2(h))

No layer has a bias, out_proj neither (that of grouped-query attention has one).
Both modules have

    forward(x, cache=None)

    x        (batch, n_tokens, d_in or d_model), the next tokens
    cache    None before the first token, or the cache of an earlier call
    returns  the pair (output, cache)
             output  (batch, n_tokens, d_out or d_model)
             cache   the pair (keys, values) of all tokens so far, in order:
                     (batch, num_kv_heads, n_cached + n_tokens, d_head) each;
                     keys are turned, values are not

Requirements
  - The outputs of all chunks, one after the other, are those of the whole
    sequence in one call: positions and the mask go on after the cache.
  - A ValueError refuses more tokens than context_length, cached ones included,
    an odd d_head, and heads that do not divide d_out or num_heads.
  - Angles are computed in float32 or float64, whatever the dtype of x is.
  - dropout is the rate for attention weights and for the hidden units of
    SwiGLU, in training only. The block itself drops nothing.
  - The modules keep nothing between calls. x and the cache are not modified; a
    cache may be used twice. Both may be views that are not contiguous.
  - Scores of any size give finite results; changing a later token changes no
    earlier output. Gradients reach x and all parameters.
  - Output and cache have the dtype of the module and x, for example bfloat16.
    After a move to another device, everything works there.
  - No Python loop runs over batch, heads or tokens. For one new token, memory
    grows with the cached tokens, not with their square.

Example

    wave(*shape, start=0) is the sine of start, start + 1, ... in float64, as a
    tensor of this shape: (torch.arange(n) + start).double().sin().view(shape)

    block = ModernBlock(16, 4, 2, 6, 16).double(), with 1088 parameters: number
    i of the sorted names (from 0) is filled with wave(start=100 * i)

    output, (keys, values) = block(wave(1, 5, 16))
    output[0, 4, :4]  = [1.6969, 1.1661, 0.5663, -0.6799]
    keys[0, 1, 1]     = [-0.1344, 0.2817, -0.6827, 1.0160]

Write it by hand. These names of torch are not accepted here:
scaled_dot_product, MultiheadAttention, multi_head_attention,
flex_attention, nn.attention, Transformer, transformer, rms_norm, RMSNorm,
layer_norm, LayerNorm.

What is new: Everything together: the block of LLaMA and of most open models
since.

From: LLaMA: Open and Efficient Foundation Language Models (2023)
"""

import torch
from rms_norm import RMSNorm
from swiglu import SwiGLU
from torch import Tensor, nn

KVCache = tuple[Tensor, Tensor]  # keys and values, (batch, num_kv_heads, n_cached, d_head) each


class RotaryAttention(nn.Module):
    """Causal attention with rotary positions, heads of keys that are shared, and a cache.

    Raises ValueError if num_heads does not divide d_out, or num_kv_heads num_heads, and for an odd
    size of the heads.
    """

    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        num_kv_heads: int,
        base: float = 10000.0,
    ) -> None:
        super().__init__()
        raise NotImplementedError("fill in modern_block")

    def forward(self, x: Tensor, cache: KVCache | None = None) -> tuple[Tensor, KVCache]:
        """Map the next tokens x (batch, n_tokens, d_in) to (batch, n_tokens, d_out) and a cache.

        Raises ValueError for more tokens than context_length, those in the cache included.
        """
        raise NotImplementedError("fill in modern_block")


class ModernBlock(nn.Module):
    """Rotary attention, then SwiGLU, each behind an RMS norm and beside a residual connection."""

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        num_kv_heads: int,
        d_ff: int,
        context_length: int,
        dropout: float = 0.0,
        base: float = 10000.0,
    ) -> None:
        super().__init__()
        raise NotImplementedError("fill in modern_block")

    def forward(self, x: Tensor, cache: KVCache | None = None) -> tuple[Tensor, KVCache]:
        """Map the next tokens x (batch, n_tokens, d_model) to the same shape and a cache."""
        raise NotImplementedError("fill in modern_block")
