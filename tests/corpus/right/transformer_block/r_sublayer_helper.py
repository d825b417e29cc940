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
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)
        self.attention = MultiHeadAttention(
            d_in=d_model,
            d_out=d_model,
            context_length=context_length,
            dropout=dropout,
            num_heads=num_heads,
            causal=causal,
        )
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.rate = dropout
        self.pre = norm_first

    def _around(self, x: Tensor, part: Callable[[Tensor], Tensor], norm: Callable[[Tensor], Tensor]) -> Tensor:
        """One sub-layer with its norm, its dropout and its residual."""
        added = part(norm(x) if self.pre else x)
        total = x + nn.functional.dropout(added, p=self.rate, training=self.training)
        return total if self.pre else norm(total)

    def forward(self, x: Tensor) -> Tensor:
        x = self._around(x, self.attention, self.norm1)
        return self._around(x, self.feed_forward, self.norm2)
