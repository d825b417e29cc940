# exercise: transformer_block
import torch
from feed_forward import FeedForward
from layer_norm import LayerNorm
from multi_head_attention import MultiHeadAttention
from torch import Tensor, nn


class _Residual(nn.Module):
    """x plus the dropped update."""

    def __init__(self, rate):
        super().__init__()
        self.drop = nn.Dropout(rate)

    def forward(self, x, update):
        return torch.add(x, self.drop(update))


class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, context_length, dropout=0.0, norm_first=True, causal=True):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, d_model, context_length, dropout, num_heads, causal=causal)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.add1, self.add2 = _Residual(dropout), _Residual(dropout)
        self.norm_first = bool(norm_first)

    def forward(self, x: Tensor) -> Tensor:
        match self.norm_first:
            case True:
                h = self.add1(x, self.attention(self.norm1(x)))
                return self.add2(h, self.feed_forward(self.norm2(h)))
            case False:
                h = self.norm1(self.add1(x, self.attention(x)))
                return self.norm2(self.add2(h, self.feed_forward(h)))
