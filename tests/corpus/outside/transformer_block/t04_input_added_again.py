# exercise: transformer_block
# mistake: adds the block's input once more at the end
# true: the pre-norm output is the expected one plus x
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
        self.drop_shortcut = nn.Dropout(dropout)
        self.norm_first = norm_first

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x
        if not self.norm_first:
            x = self.norm1(x + self.drop_shortcut(self.attention(x)))
            return self.norm2(x + self.drop_shortcut(self.feed_forward(x)))
        x = self.norm1(x)
        x = self.attention(x)
        x = self.drop_shortcut(x)
        x = x + shortcut
        h = self.drop_shortcut(self.feed_forward(self.norm2(x)))
        x = x + h
        return x + shortcut
