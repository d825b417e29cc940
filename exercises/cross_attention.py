r"""# Cross-attention

A translator reads a sentence in one language while it writes in another. Its
queries come from what it writes, x; the keys and values come from what it
reads, context. Nothing else changes: the scores are a table with a row for
each query and a column for each key, which need not be square.

    queries = W_query(x)    keys = W_key(context)    values = W_value(context)

Sentences of a batch have different lengths, so the shorter ones are padded.
key_mask says which tokens of context are real.

Write

    CrossAttention(d_query, d_context, d_out, dropout, num_heads,
                   causal=False)

with the linear layers W_query, W_key, W_value (without biases) and out_proj
(with a bias), num_heads heads of d_head = d_out // num_heads features, scores
divided by sqrt(d_head), and dropout on the weights, as in
multi_head_attention.

    forward(x, context=None, key_mask=None)
    x         (batch, n_queries, d_query)
    context   (batch, n_keys, d_context); None: x itself (self-attention)
    key_mask  (batch, n_keys), bool; True: this key may be attended to.
              (nn.MultiheadAttention's key_padding_mask is the opposite.)
    returns   (batch, n_queries, d_out)      dtype of x

With causal=True, query i attends to keys 0 to i only, and of these to those
that key_mask allows.

Then write two blocks, pre-norm like your transformer_block, made of
CrossAttention and your own LayerNorm and FeedForward. dropout is the rate of
these parts too, and of a dropout on the output of each sub-layer before it is
added.

    EncoderBlock(d_model, num_heads, d_ff, dropout)
    forward(x, key_mask=None)
        x = x + attention(norm1(x))                 not causal, with key_mask
        x = x + feed_forward(norm2(x))

    DecoderBlock(d_model, num_heads, d_ff, dropout)
    forward(x, memory, key_mask=None, memory_mask=None)
        x = x + self_attention(norm1(x))            causal, with key_mask
        x = x + cross_attention(norm2(x), memory)   with memory_mask
        x = x + feed_forward(norm3(x))

memory is the output of an encoder, (batch, n_keys, d_model). It is not
normalised: only x is. The parts have the names above, there are no others,
and all widths are d_model.

Requirements
  - A query without any key (all hidden by key_mask, or the earlier ones
    hidden and causal) has weights of 0, so its output is out_proj.bias. All
    gradients are finite.
  - A hidden token of context may hold anything, even nan: it changes neither
    the output nor a gradient. (In self-attention it is a query as well; then
    this holds for the outputs of all other queries.)
  - ValueError if causal=True is given a context, and if num_heads does not
    divide d_out.
  - .to(dtype) and .to(device) are enough to move a module. Arguments may be
    views that are not contiguous, and are not modified. Any batch size and
    any number of queries and keys work, one included.
  - No Python loop runs over batch, heads, queries or keys.
  - nn.MultiheadAttention, nn.Transformer and its layers, nn.LayerNorm and
    scaled_dot_product_attention are not allowed.

While the blocks are graded, LayerNorm and FeedForward are replaced by correct
ones, so a mistake in an earlier exercise costs no points here.

Example (d_query = d_context = d_out = 2, one head, all weights the identity
matrix, the bias zeros, 4 decimals)

    x        = [[1., 0.], [0., 1.], [1., 1.]]

    causal=True, key_mask = [False, True, True]
    output   = [[0., 0.], [0., 1.], [0.6698, 1.]]

    context  = [[2., 0.], [0., 1.], [1., 1.], [5., 5.]]
    key_mask = [True, True, True, False]
    output   = [[1.4359, 0.4240], [0.7967, 0.8022], [1.2033, 0.5989]]

Write it by hand. These names of torch are not accepted here:
scaled_dot_product, MultiheadAttention, multi_head_attention, Transformer,
transformer, LayerNorm, nn.attention.

What is new: A second sequence to attend to, and padding that is hidden
whatever it holds.

From: Attention Is All You Need (2017)
"""

import torch
from feed_forward import FeedForward
from layer_norm import LayerNorm
from torch import Tensor, nn


class CrossAttention(nn.Module):
    """Attention of the tokens of x to those of a context, in num_heads heads.

    With causal, x attends to itself, and no token to later ones. Raises ValueError if num_heads
    does not divide d_out.
    """

    def __init__(
        self,
        d_query: int,
        d_context: int,
        d_out: int,
        dropout: float,
        num_heads: int,
        causal: bool = False,
    ) -> None:
        super().__init__()
        raise NotImplementedError("fill in cross_attention")

    def forward(
        self, x: Tensor, context: Tensor | None = None, key_mask: Tensor | None = None
    ) -> Tensor:
        """Map x (batch, n_queries, d_query) to (batch, n_queries, d_out).

        context (batch, n_keys, d_context) is x itself if it is None; key_mask (batch, n_keys) is
        True for the keys that may be attended to. Raises ValueError for a context if causal.
        """
        raise NotImplementedError("fill in cross_attention")


class EncoderBlock(nn.Module):
    """Attention of all tokens to all tokens, then feed-forward, pre-norm."""

    def __init__(self, d_model: int, num_heads: int, d_ff: int, dropout: float) -> None:
        super().__init__()
        raise NotImplementedError("fill in cross_attention")

    def forward(self, x: Tensor, key_mask: Tensor | None = None) -> Tensor:
        """Map x (batch, n_tokens, d_model) to the same shape and dtype."""
        raise NotImplementedError("fill in cross_attention")


class DecoderBlock(nn.Module):
    """Causal attention, attention to the encoder's output, then feed-forward, pre-norm."""

    def __init__(self, d_model: int, num_heads: int, d_ff: int, dropout: float) -> None:
        super().__init__()
        raise NotImplementedError("fill in cross_attention")

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        key_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        """Map x (batch, n_tokens, d_model) to the same shape and dtype.

        memory is (batch, n_keys, d_model); key_mask (batch, n_tokens) is the mask of x, and
        memory_mask (batch, n_keys) that of memory.
        """
        raise NotImplementedError("fill in cross_attention")
