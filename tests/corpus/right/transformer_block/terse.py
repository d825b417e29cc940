"""Transformer block whose two sub-layers share one lambda."""

from torch import nn

from feed_forward import FeedForward
from layer_norm import LayerNorm
from multi_head_attention import MultiHeadAttention


class TransformerBlock(nn.Module):
    def __init__(
        self, d_model, num_heads, d_ff, context_length, dropout=0.0, norm_first=True, causal=True
    ):
        super().__init__()
        self.attention = MultiHeadAttention(
            d_model, d_model, context_length, dropout, num_heads, False, causal
        )
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)
        self._drop, self._pre = nn.Dropout(dropout), norm_first

    def forward(self, x):
        d = self._drop
        step = (lambda x, f, n: x + d(f(n(x)))) if self._pre else (lambda x, f, n: n(x + d(f(x))))
        return step(step(x, self.attention, self.norm1), self.feed_forward, self.norm2)
