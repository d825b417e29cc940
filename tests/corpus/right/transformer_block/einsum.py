"""Transformer block wired from the parts of this folder, one line per sub-layer."""

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
            d_model, d_model, context_length, dropout, num_heads, causal=causal
        )
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.drop1 = nn.Dropout(dropout)
        self.drop2 = nn.Dropout(dropout)
        self.norm_first = norm_first

    def forward(self, x):
        if self.norm_first:
            y = x + self.drop1(self.attention(self.norm1(x)))
            return y + self.drop2(self.feed_forward(self.norm2(y)))
        y = self.norm1(x + self.drop1(self.attention(x)))
        return self.norm2(y + self.drop2(self.feed_forward(y)))
