# exercise: transformer_block
# mistake: the feed-forward network gets the attention's output, not the updated stream
# true: post-norm is right; in pre-norm the second line normalises the attention output alone
from feed_forward import FeedForward
from layer_norm import LayerNorm
from multi_head_attention import MultiHeadAttention
from torch import Tensor, nn


class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, context_length, dropout=0.0, norm_first=True, causal=True):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, d_model, context_length, dropout, num_heads, causal=causal)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        if self.norm_first:
            attn = self.dropout(self.attention(self.norm1(x)))
            x = x + attn
            ff = self.dropout(self.feed_forward(self.norm2(attn)))
            return x + ff
        attn = self.dropout(self.attention(x))
        x = self.norm1(x + attn)
        return self.norm2(x + self.dropout(self.feed_forward(x)))
