# exercise: transformer_block
from functools import reduce

from feed_forward import FeedForward
from layer_norm import LayerNorm
from multi_head_attention import MultiHeadAttention
from torch import Tensor, nn


def chain(*steps):
    return lambda x: reduce(lambda value, step: step(value), steps, x)


class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, context_length, dropout=0.0, norm_first=True, causal=True):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, d_model, context_length, dropout, num_heads, causal=causal)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1, self.norm2 = (LayerNorm(d_model) for _ in range(2))
        self.dropout = nn.Dropout(dropout)
        self.norm_first = norm_first

    def forward(self, x: Tensor) -> Tensor:
        for norm, part in ((self.norm1, self.attention), (self.norm2, self.feed_forward)):
            if self.norm_first:
                x = x + chain(norm, part, self.dropout)(x)
            else:
                x = norm(x + chain(part, self.dropout)(x))
        return x
