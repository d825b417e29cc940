# right: a helper wires one sub-layer for both kinds of norm, with functional dropout.
import torch.nn.functional as F
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
        self.rate, self.norm_first = dropout, norm_first

    def _step(self, x: Tensor, part: nn.Module, norm: nn.Module) -> Tensor:
        update = part(norm(x)) if self.norm_first else part(x)
        total = x + F.dropout(update, self.rate, self.training)
        return total if self.norm_first else norm(total)

    def forward(self, x: Tensor) -> Tensor:
        return self._step(
            self._step(x, self.attention, self.norm1), self.feed_forward, self.norm2
        )
