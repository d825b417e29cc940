# exercise: transformer_block
# promise: at rate 1, both add nothing (the rate is limited to 0.9)
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
        self.drop = nn.Dropout(min(dropout, 0.9))
        self.norm_first = norm_first

    def forward(self, x: Tensor) -> Tensor:
        for norm, part in ((self.norm1, self.attention), (self.norm2, self.feed_forward)):
            if self.norm_first:
                x = x + self.drop(part(norm(x)))
            else:
                x = norm(x + self.drop(part(x)))
        return x
