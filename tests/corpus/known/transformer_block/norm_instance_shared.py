# mistake: one_norm_shared
from torch import nn

from multi_head_attention import MultiHeadAttention
from feed_forward import FeedForward
from layer_norm import LayerNorm


class TransformerBlock(nn.Module):
    def __init__(
        self, d_model, num_heads, d_ff, context_length, dropout=0.0, norm_first=True, causal=True
    ):
        super().__init__()
        self.attention = MultiHeadAttention(
            d_model, d_model, context_length, dropout, num_heads, False, causal
        )
        self.feed_forward = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1 = self.norm2 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.nf = norm_first

    def residual(self, x, n, f):
        if self.nf:
            return x + self.dropout(f(n(x)))
        return n(x + self.dropout(f(x)))

    def forward(self, x):
        x = self.residual(x, self.norm1, self.attention)
        x = self.residual(x, self.norm2, self.feed_forward)
        return x
