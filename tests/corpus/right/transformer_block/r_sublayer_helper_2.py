from typing import Callable

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
        self.attention = MultiHeadAttention(
            d_model, d_model, context_length, dropout, num_heads, causal=causal
        )
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)
        self.drop = nn.Dropout(dropout)
        self._step = self._pre if norm_first else self._post

    def _pre(self, x: Tensor, norm: nn.Module, part: Callable[[Tensor], Tensor]) -> Tensor:
        return x + self.drop(part(norm(x)))

    def _post(self, x: Tensor, norm: nn.Module, part: Callable[[Tensor], Tensor]) -> Tensor:
        return norm(x + self.drop(part(x)))

    def forward(self, x: Tensor) -> Tensor:
        return self._step(self._step(x, self.norm1, self.attention), self.norm2, self.feed_forward)
