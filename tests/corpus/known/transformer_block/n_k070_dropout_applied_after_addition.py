# mistake: dropout_on_the_residual_stream
from feed_forward import FeedForward
from layer_norm import LayerNorm
from multi_head_attention import MultiHeadAttention
from torch import Tensor, nn


class TransformerBlock(nn.Module):
    """Attention, then feed-forward, each with a norm and a residual connection."""

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
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(
            d_model, d_model, context_length, dropout, num_heads, causal=causal
        )
        self.norm1 = LayerNorm(d_model)
        self.drop1 = nn.Dropout(dropout)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm2 = LayerNorm(d_model)
        self.drop2 = nn.Dropout(dropout)

    def pre_norm(self, x: Tensor) -> Tensor:
        shortcut = x
        x = self.norm1(x)
        x = self.attention(x)
        x = self.drop1(x + shortcut)

        shortcut = x
        x = self.norm2(x)
        x = self.feed_forward(x)
        x = self.drop2(x + shortcut)
        return x

    def post_norm(self, x: Tensor) -> Tensor:
        x = self.norm1(self.drop1(x + self.attention(x)))
        x = self.norm2(self.drop2(x + self.feed_forward(x)))
        return x

    def forward(self, x: Tensor) -> Tensor:
        return self.pre_norm(x) if self.norm_first else self.post_norm(x)
