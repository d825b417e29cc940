# exercise: transformer_block
# mistake: divides each sum by sqrt(2) to keep the variance
# true: pre-norm outputs are too small; in post-norm the following norm hides almost all of it
import math

from feed_forward import FeedForward
from layer_norm import LayerNorm
from multi_head_attention import MultiHeadAttention
from torch import Tensor, nn


class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, context_length, dropout=0.0, norm_first=True, causal=True):
        super().__init__()
        self.attention = MultiHeadAttention(
            d_in=d_model, d_out=d_model, context_length=context_length,
            dropout=dropout, num_heads=num_heads, causal=causal,
        )
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)
        self.drop = nn.Dropout(dropout)
        self.pre = norm_first

    def add(self, x, update):
        return (x + self.drop(update)) / math.sqrt(2)

    def forward(self, x: Tensor) -> Tensor:
        if self.pre:
            x = self.add(x, self.attention(self.norm1(x)))
            return self.add(x, self.feed_forward(self.norm2(x)))
        x = self.norm1(self.add(x, self.attention(x)))
        return self.norm2(self.add(x, self.feed_forward(x)))
