# mistake: always_pre_norm
from feed_forward import FeedForward
from layer_norm import LayerNorm
from multi_head_attention import MultiHeadAttention
from torch import Tensor, nn


class TransformerBlock(nn.Module):
    def __init__(self, d_model: int, num_heads: int, d_ff: int, context_length: int, dropout: float = 0.0, norm_first: bool = True, causal: bool = True) -> None:
        super().__init__()
        self.norm_first = "pre" if norm_first else "post"
        self.attention = MultiHeadAttention(d_model, d_model, context_length, dropout, num_heads, causal=causal)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        if self.norm_first:  # "pre" or "post"
            h = x + self.dropout(self.attention(self.norm1(x)))
            out = h + self.dropout(self.feed_forward(self.norm2(h)))
        else:
            h = self.norm1(x + self.dropout(self.attention(x)))
            out = self.norm2(h + self.dropout(self.feed_forward(h)))
        return out
