# mistake: norm_added_to_x_inside
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
        self.attention = MultiHeadAttention(
            d_model, d_model, context_length, dropout, num_heads, causal=causal
        )
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.norm_first = norm_first

    def forward(self, x: Tensor) -> Tensor:
        """Map x (batch, n_tokens, d_model) to the same shape and dtype."""
        if self.norm_first:
            x = x + self.dropout(self.attention(self.norm1(x) + x))  # (batch, n_tokens, d_model)
            x = x + self.dropout(self.feed_forward(self.norm2(x)))  # (batch, n_tokens, d_model)
        else:
            x = self.norm1(x + self.dropout(self.attention(x)))  # (batch, n_tokens, d_model)
            x = self.norm2(x + self.dropout(self.feed_forward(x)))  # (batch, n_tokens, d_model)
        return x  # (batch, n_tokens, d_model)
