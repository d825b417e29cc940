# exercise: transformer_block
from feed_forward import FeedForward
from layer_norm import LayerNorm
from multi_head_attention import MultiHeadAttention
from torch import Tensor, nn


class TransformerBlock(nn.Module):
    """In pre-norm the block is x plus two deltas; post-norm is written out."""

    def __init__(self, d_model, num_heads, d_ff, context_length, dropout=0.0, norm_first=True, causal=True):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, d_model, context_length, dropout, num_heads, causal=causal)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        if not self.norm_first:
            y = self.norm1(x + self.drop(self.attention(x)))
            return self.norm2(y + self.drop(self.feed_forward(y)))
        delta1 = self.drop(self.attention(self.norm1(x)))
        delta2 = self.drop(self.feed_forward(self.norm2(x + delta1)))
        return x + delta1 + delta2
