# exercise: transformer_block
from typing import Any

import feed_forward as _ff
import layer_norm as _ln
import multi_head_attention as _mha
from torch import Tensor
from torch.nn import Dropout, Module


class TransformerBlock(Module):
    __constants__ = ["norm_first"]

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        context_length: int,
        dropout: float = 0.0,
        norm_first: bool = True,
        causal: bool = True,
        **factory_kwargs: Any,
    ) -> None:
        super().__init__()
        self.attention = _mha.MultiHeadAttention(
            d_model, d_model, context_length, dropout, num_heads, causal=causal
        )
        # Implementation of Feedforward model
        self.feed_forward = _ff.FeedForward(d_model, d_ff, dropout)

        self.norm_first = norm_first
        self.norm1 = _ln.LayerNorm(d_model)
        self.norm2 = _ln.LayerNorm(d_model)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        # see Fig. 1 of "On Layer Normalization in the Transformer Architecture"
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x))
            x = x + self._ff_block(self.norm2(x))
        else:
            x = self.norm1(x + self._sa_block(x))
            x = self.norm2(x + self._ff_block(x))
        return x

    # self-attention block
    def _sa_block(self, x: Tensor) -> Tensor:
        return self.dropout1(self.attention(x))

    # feed forward block
    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout2(self.feed_forward(x))
