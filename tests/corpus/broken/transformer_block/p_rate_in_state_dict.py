# promise: The rate is a saved buffer, so the state_dict has one more name.
import torch
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
        self.attention = MultiHeadAttention(d_model, d_model, context_length, dropout, num_heads, causal=causal)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.register_buffer("dropout_rate", torch.tensor(float(dropout)))
        self.norm_first = norm_first

    def _drop(self, y: Tensor) -> Tensor:
        return F.dropout(y, float(self.dropout_rate), self.training)

    def forward(self, x: Tensor) -> Tensor:
        if self.norm_first:
            x = x + self._drop(self.attention(self.norm1(x)))
            return x + self._drop(self.feed_forward(self.norm2(x)))
        x = self.norm1(x + self._drop(self.attention(x)))
        return self.norm2(x + self._drop(self.feed_forward(x)))
