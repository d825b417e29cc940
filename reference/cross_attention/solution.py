"""Reference solution: attention to another sequence, and the blocks of encoder and decoder."""

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
        # --- solution
        if d_out % num_heads != 0:
            raise ValueError(f"{num_heads} heads do not divide d_out = {d_out}")
        self.num_heads = num_heads
        self.scale = (d_out // num_heads) ** -0.5
        self.causal = causal
        self.W_query = nn.Linear(d_query, d_out, bias=False)
        self.W_key = nn.Linear(d_context, d_out, bias=False)
        self.W_value = nn.Linear(d_context, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        # --- end

    def forward(
        self, x: Tensor, context: Tensor | None = None, key_mask: Tensor | None = None
    ) -> Tensor:
        """Map x (batch, n_queries, d_query) to (batch, n_queries, d_out).

        context (batch, n_keys, d_context) is x itself if it is None; key_mask (batch, n_keys) is
        True for the keys that may be attended to. Raises ValueError for a context if causal.
        """
        # --- solution
        if self.causal and context is not None:
            raise ValueError("the order of x says nothing about that of a context")
        context = x if context is None else context  # (batch, n_keys, d_context)
        sizes = len(x), x.shape[1], context.shape[1]
        visible = x.new_ones(sizes, dtype=torch.bool)  # (batch, n_queries, n_keys)
        if self.causal:
            visible = visible.tril()  # (batch, n_queries, n_keys)
        if key_mask is not None:
            visible = visible & key_mask.unsqueeze(1)  # (batch, n_queries, n_keys)
            # A weight of 0 would not hide a nan from the values, nor from the layers' gradients.
            context = context.masked_fill(~key_mask.unsqueeze(2), 0.0)  # (batch, n_keys, d_context)

        queries = self._split(self.W_query(x))  # (batch, heads, n_queries, d_head)
        keys = self._split(self.W_key(context))  # (batch, heads, n_keys, d_head)
        values = self._split(self.W_value(context))  # (batch, heads, n_keys, d_head)

        visible = visible.unsqueeze(1)  # (batch, 1, n_queries, n_keys), the same for every head
        empty = ~visible.any(dim=-1, keepdim=True)  # (batch, 1, n_queries, 1)
        scores = queries @ keys.transpose(2, 3) * self.scale  # (batch, heads, n_queries, n_keys)
        scores = scores.masked_fill(~visible, -torch.inf)  # (batch, heads, n_queries, n_keys)
        # A softmax of nothing but -inf is nan, so the scores of an empty row are made ordinary.
        scores = scores.masked_fill(empty, 0.0)  # (batch, heads, n_queries, n_keys)
        weights = torch.softmax(scores, dim=-1)  # (batch, heads, n_queries, n_keys)
        weights = weights.masked_fill(empty, 0.0)  # (batch, heads, n_queries, n_keys)
        weights = self.dropout(weights)  # (batch, heads, n_queries, n_keys)

        heads = weights @ values  # (batch, heads, n_queries, d_head)
        heads = heads.transpose(1, 2).flatten(2)  # (batch, n_queries, d_out), head after head
        return self.out_proj(heads)  # (batch, n_queries, d_out)

    def _split(self, projected: Tensor) -> Tensor:
        """Give each head of (batch, n_tokens, d_out) its own axis, in front of the tokens."""
        split = projected.unflatten(2, (self.num_heads, -1))  # (batch, n_tokens, heads, d_head)
        return split.transpose(1, 2)  # (batch, heads, n_tokens, d_head)
        # --- end


class EncoderBlock(nn.Module):
    """Attention of all tokens to all tokens, then feed-forward, pre-norm."""

    def __init__(self, d_model: int, num_heads: int, d_ff: int, dropout: float) -> None:
        super().__init__()
        # --- solution
        self.attention = CrossAttention(d_model, d_model, d_model, dropout, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        # --- end

    def forward(self, x: Tensor, key_mask: Tensor | None = None) -> Tensor:
        """Map x (batch, n_tokens, d_model) to the same shape and dtype."""
        # --- solution
        attended = self.attention(self.norm1(x), None, key_mask)  # shape of x
        x = x + self.dropout(attended)  # (batch, n_tokens, d_model)
        return x + self.dropout(self.feed_forward(self.norm2(x)))  # (batch, n_tokens, d_model)
        # --- end


class DecoderBlock(nn.Module):
    """Causal attention, attention to the encoder's output, then feed-forward, pre-norm."""

    def __init__(self, d_model: int, num_heads: int, d_ff: int, dropout: float) -> None:
        super().__init__()
        # --- solution
        sizes = (d_model, d_model, d_model, dropout, num_heads)
        self.self_attention = CrossAttention(*sizes, causal=True)
        self.cross_attention = CrossAttention(*sizes)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.norm3 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        # --- end

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
        # --- solution
        own = self.self_attention(self.norm1(x), None, key_mask)  # (batch, n_tokens, d_model)
        x = x + self.dropout(own)  # (batch, n_tokens, d_model)
        other = self.cross_attention(self.norm2(x), memory, memory_mask)  # shape of x
        x = x + self.dropout(other)  # (batch, n_tokens, d_model)
        return x + self.dropout(self.feed_forward(self.norm3(x)))  # (batch, n_tokens, d_model)
        # --- end
