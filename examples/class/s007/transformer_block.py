from torch import Tensor, nn

from feed_forward import FeedForward
from layer_norm import LayerNorm
from multi_head_attention import MultiHeadAttention


class TransformerBlock(nn.Module):
    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        context_length: int,
        dropout: float = 0.0,
        norm_first: bool = True,
        causal: bool = True,
    ) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(
            d_in=d_model,
            d_out=d_model,
            context_length=context_length,
            dropout=dropout,
            num_heads=num_heads,
            causal=causal,
        )
        self.feed_forward = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)
        self.drop1, self.drop2 = nn.Dropout(dropout), nn.Dropout(dropout)
        self.pre_norm = norm_first

    def forward(self, x: Tensor) -> Tensor:
        if self.pre_norm:
            x = x + self.drop1(self.attention(self.norm1(x)))
            x = x + self.drop2(self.feed_forward(self.norm2(x)))
        else:
            x = self.norm1(x + self.drop1(self.attention(x)))
            x = self.norm2(x + self.drop2(self.feed_forward(x)))
        return x
