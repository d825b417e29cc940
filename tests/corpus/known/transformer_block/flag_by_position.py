# mistake: causal_by_position
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
            d_model, d_model, context_length, dropout, num_heads, causal
        )
        self.feed_forward = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)
        self.drop = nn.Dropout(dropout)
        self.norm_first = norm_first

    def residual(self, x, ln, sub):
        if self.norm_first:
            return x + self.drop(sub(ln(x)))
        return ln(x + self.drop(sub(x)))

    def forward(self, x):
        x = self.residual(x, self.norm1, self.attention)
        x = self.residual(x, self.norm2, self.feed_forward)
        return x
