# mistake: norm_after_the_addition_too
from feed_forward import FeedForward
from layer_norm import LayerNorm
from multi_head_attention import MultiHeadAttention
from torch import Tensor, nn


class TransformerBlock(nn.Module):
    def __init__(self, d_model: int, num_heads: int, d_ff: int, context_length: int, dropout: float = 0.0, norm_first: bool = True, causal: bool = True) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(d_model, d_model, context_length, dropout, num_heads, causal=causal)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.norm_first = norm_first

    def _residual(self, x: Tensor, f, norm) -> Tensor:
        y = f(norm(x)) if self.norm_first else f(x)
        return norm(x + self.dropout(y))

    def forward(self, x: Tensor) -> Tensor:
        return self._residual(self._residual(x, self.attention, self.norm1), self.feed_forward, self.norm2)
