from collections.abc import Callable

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
        self.norm2 = LayerNorm(d_model)
        self.norm1 = LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.attention = MultiHeadAttention(
            d_model, d_model, context_length, dropout, num_heads, causal=causal
        )
        self.drop = nn.Dropout(dropout)

    def around(self, f: Callable[[Tensor], Tensor], norm: Callable[[Tensor], Tensor]):
        """The sub-layer f with its residual and its norm, as one function of the stream."""
        if self.norm_first:
            return lambda x: x + self.drop(f(norm(x)))
        return lambda x: norm(x + self.drop(f(x)))

    def forward(self, x: Tensor) -> Tensor:
        gather = self.around(self.attention, self.norm1)
        think = self.around(self.feed_forward, self.norm2)
        return think(gather(x))
