# mistake: always_post_norm
from feed_forward import FeedForward
from layer_norm import LayerNorm
from multi_head_attention import MultiHeadAttention
from torch import Tensor, nn


class AddNorm(nn.Module):
    """The residual connection followed by the norm."""

    def __init__(self, dropout):
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, y, norm):
        return norm(self.dropout(y) + x)


class TransformerBlock(nn.Module):
    def __init__(self, d_model: int, num_heads: int, d_ff: int, context_length: int, dropout: float = 0.0, norm_first: bool = True, causal: bool = True) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(d_model, d_model, context_length, dropout, num_heads, causal=causal)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.addnorm = AddNorm(dropout)
        self.norm_first = norm_first

    def forward(self, x: Tensor) -> Tensor:
        y = self.addnorm(x, self.attention(x), self.norm1)
        return self.addnorm(y, self.feed_forward(y), self.norm2)
