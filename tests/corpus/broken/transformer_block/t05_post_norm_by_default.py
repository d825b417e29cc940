# exercise: transformer_block
# promise: TransformerBlock(..., dropout=0.0, norm_first=True, causal=True) (norm_first is False by default)
from feed_forward import FeedForward
from layer_norm import LayerNorm
from multi_head_attention import MultiHeadAttention
from torch import Tensor, nn


class TransformerBlock(nn.Module):
    def __init__(
        self, d_model: int, num_heads: int, d_ff: int, context_length: int,
        dropout: float = 0.0, norm_first: bool = False, causal: bool = True,
    ) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(d_model, d_model, context_length, dropout, num_heads, causal=causal)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.norm_first = norm_first

    def _attend(self, x):
        return self.dropout(self.attention(x))

    def _feed(self, x):
        return self.dropout(self.feed_forward(x))

    def forward(self, x: Tensor) -> Tensor:
        if self.norm_first:
            x = x + self._attend(self.norm1(x))
            return x + self._feed(self.norm2(x))
        x = self.norm1(x + self._attend(x))
        return self.norm2(x + self._feed(x))
