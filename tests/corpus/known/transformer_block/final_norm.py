# mistake: norm_after_the_addition_too
from torch import nn
from feed_forward import FeedForward
from layer_norm import LayerNorm
from multi_head_attention import MultiHeadAttention


class TransformerBlock(nn.Module):
    def __init__(
        self, d_model, num_heads, d_ff, context_length, dropout=0.0, norm_first=True, causal=True
    ):
        nn.Module.__init__(self)
        self.attention = MultiHeadAttention(
            d_model, d_model, context_length, dropout, num_heads, causal=causal
        )
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.pre_norm = norm_first

    def forward(self, x):
        # attention
        u = self.norm1(x) if self.pre_norm else x
        x1 = x + self.dropout(self.attention(u))
        if not self.pre_norm:
            x1 = self.norm1(x1)
        # feed forward
        u = self.norm2(x1) if self.pre_norm else x1
        x2 = x1 + self.dropout(self.feed_forward(u))
        return self.norm2(x2)
