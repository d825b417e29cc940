# mistake: dropout_on_the_residual_stream
# dropout is applied to the sum of x and the sub-layer's output, so x itself is dropped in training
from feed_forward import FeedForward
from layer_norm import LayerNorm
from multi_head_attention import MultiHeadAttention
from torch import Tensor, nn


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
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(
            d_model, d_model, context_length, dropout, num_heads, causal=causal
        )
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)
        self.dropout1, self.dropout2 = nn.Dropout(dropout), nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        if self.norm_first:
            h = self.dropout1(x + self.attention(self.norm1(x)))
            return self.dropout2(h + self.feed_forward(self.norm2(h)))
        h = self.norm1(self.dropout1(x + self.attention(x)))
        return self.norm2(self.dropout2(h + self.feed_forward(h)))
