import torch
import torch.nn.functional as F
from feed_forward import FeedForward
from layer_norm import LayerNorm
from multi_head_attention import MultiHeadAttention
from torch import Tensor, nn


class TransformerBlock(nn.Module):
    def __init__(self, d_model: int, num_heads: int, d_ff: int, context_length: int, dropout: float = 0.0,
                 norm_first: bool = True, causal: bool = True) -> None:
        super().__init__()
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.attention = MultiHeadAttention(d_model, d_model, context_length, dropout, num_heads, causal=causal)
        self.rate = dropout
        self.norm_first = norm_first

    def forward(self, x: Tensor) -> Tensor:
        # 残差流只加不丢 / the stream itself is never dropped
        keep = lambda t: F.dropout(t, self.rate, self.training)
        ident = nn.Identity()
        before1, after1 = (self.norm1, ident) if self.norm_first else (ident, self.norm1)
        before2, after2 = (self.norm2, ident) if self.norm_first else (ident, self.norm2)
        middle = after1(torch.add(x, keep(self.attention(before1(x)))))
        return after2(torch.add(middle, keep(self.feed_forward(before2(middle)))))
