# style: unusual
from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from feed_forward import FeedForward
from layer_norm import LayerNorm
from multi_head_attention import MultiHeadAttention


class TransformerBlock(nn.Module):
    """Two sub-layers with the same wiring; the wiring is written once in `_residual`."""

    def __init__(self, d_model: int, num_heads: int, d_ff: int, context_length: int,
                 dropout: float = 0.0, norm_first: bool = True, causal: bool = True) -> None:
        super().__init__()
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)
        self.attention = MultiHeadAttention(d_in=d_model, d_out=d_model, context_length=context_length,
                                            dropout=dropout, num_heads=num_heads, causal=causal)
        self.feed_forward = FeedForward(d_model=d_model, d_ff=d_ff, dropout=dropout)
        self.p = dropout
        self.norm_first = norm_first

    def _residual(self, x: Tensor, layer: Callable[[Tensor], Tensor], norm: LayerNorm) -> Tensor:
        def branch(t: Tensor) -> Tensor:
            return F.dropout(layer(t), self.p, self.training)

        return x + branch(norm(x)) if self.norm_first else norm(x + branch(x))

    def forward(self, x: Tensor) -> Tensor:
        for layer, norm in ((self.attention, self.norm1), (self.feed_forward, self.norm2)):
            x = self._residual(x, layer, norm)
        return x
