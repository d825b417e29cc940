# exercise: transformer_block
from feed_forward import FeedForward
from layer_norm import LayerNorm
from multi_head_attention import MultiHeadAttention
from torch import Tensor, nn


class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, context_length, dropout=0.0, norm_first=True, causal=True):
        super().__init__()
        self.attention = MultiHeadAttention(
            d_in=d_model,
            d_out=d_model,
            context_length=context_length,
            dropout=dropout,
            num_heads=num_heads,
            qkv_bias=False,
            causal=causal,
        )
        self.feed_forward = FeedForward(d_model=d_model, d_ff=d_ff, dropout=dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.order = "pre" if norm_first else "post"

    def pre(self, x: Tensor) -> Tensor:
        mid = self.dropout(self.attention(self.norm1(x))) + x
        return self.dropout(self.feed_forward(self.norm2(mid))) + mid

    def post(self, x: Tensor) -> Tensor:
        mid = self.norm1(self.dropout(self.attention(x)) + x)
        return self.norm2(self.dropout(self.feed_forward(mid)) + mid)

    def forward(self, x: Tensor) -> Tensor:
        return getattr(self, self.order)(x)
