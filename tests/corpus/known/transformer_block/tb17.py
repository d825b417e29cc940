# mistake: causal_flag_lost + dropout_on_the_final_stream
from feed_forward import FeedForward
from layer_norm import LayerNorm
from multi_head_attention import MultiHeadAttention
from torch import Tensor, nn


class TransformerBlock(nn.Module):
    def __init__(self, d_model: int, num_heads: int, d_ff: int, context_length: int, dropout: float = 0.0, norm_first: bool = True, causal: bool = True) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(d_model, d_model, context_length, dropout, num_heads, qkv_bias=False, causal=True)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.norm_first, self.is_causal = norm_first, causal

    def forward(self, x: Tensor) -> Tensor:
        y = x
        y = y + self.dropout(self.attention(self.norm1(y) if self.norm_first else y))
        y = y if self.norm_first else self.norm1(y)
        y = y + self.dropout(self.feed_forward(self.norm2(y) if self.norm_first else y))
        y = y if self.norm_first else self.norm2(y)
        return self.dropout(y)
