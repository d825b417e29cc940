# mistake: no_dropout_in_the_block + one_head
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
            d_model, d_model, context_length, dropout, 1, causal=causal
        )
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.first = norm_first

    def forward(self, x):
        # attention
        inp = self.norm1(x) if self.first else x
        h = x + self.attention(inp)
        if not self.first:
            h = self.norm1(h)
        # feed forward
        inp = self.norm2(h) if self.first else h
        out = h + self.feed_forward(inp)
        if not self.first:
            out = self.norm2(out)
        return out
