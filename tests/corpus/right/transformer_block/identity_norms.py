# note: one formula for both orders, with the identity in place of the norms that do not apply, and torch.add with functional dropout
import torch
import torch.nn.functional as F
from feed_forward import FeedForward
from layer_norm import LayerNorm
from multi_head_attention import MultiHeadAttention
from torch import Tensor, nn


def same(t: Tensor) -> Tensor:
    return t


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
        self.dropout = dropout
        self.norm_first = bool(norm_first)

    def forward(self, x: Tensor) -> Tensor:
        before1, after1 = (self.norm1, same) if self.norm_first else (same, self.norm1)
        before2, after2 = (self.norm2, same) if self.norm_first else (same, self.norm2)
        a = F.dropout(self.attention(before1(x)), p=self.dropout, training=self.training)
        h = after1(torch.add(a, x))
        f = F.dropout(self.feed_forward(before2(h)), p=self.dropout, training=self.training)
        return after2(torch.add(f, h))
