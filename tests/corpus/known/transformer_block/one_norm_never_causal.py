# mistake: one_norm_shared + never_causal
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
            d_model, d_model, context_length, dropout, num_heads, causal=False
        )
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.nf = norm_first

    def forward(self, x):
        if self.nf:
            attn = self.attention(self.norm1(x))
            mid = x + self.dropout(attn)
            ff = self.feed_forward(self.norm1(mid))
            return mid + self.dropout(ff)
        attn = self.attention(x)
        mid = self.norm1(x + self.dropout(attn))
        ff = self.feed_forward(mid)
        return self.norm2(mid + self.dropout(ff))
