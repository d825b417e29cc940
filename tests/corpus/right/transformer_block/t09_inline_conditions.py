# exercise: transformer_block
from feed_forward import FeedForward
from layer_norm import LayerNorm
from multi_head_attention import MultiHeadAttention
from torch import Tensor, nn


class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, context_length, dropout=0.0, norm_first=True, causal=True):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, d_model, context_length, dropout, num_heads, causal=causal)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.norm_first = norm_first

    def forward(self, x: Tensor) -> Tensor:
        out = self.attention(self.norm1(x) if self.norm_first else x)
        out = self.dropout(out) + x
        if not self.norm_first:
            out = self.norm1(out)
        residual = out
        if self.norm_first:
            out = self.norm2(out)
        out = residual + self.dropout(self.feed_forward(out))
        if not self.norm_first:
            out = self.norm2(out)
        return out
