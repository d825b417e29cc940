"""Transformer block with one helper method for each of the two sub-layers."""

import torch.nn.functional as F
from torch import nn

from layer_norm import LayerNorm
from feed_forward import FeedForward
from multi_head_attention import MultiHeadAttention


class TransformerBlock(nn.Module):
    def __init__(
        self,
        d_model,
        num_heads,
        d_ff,
        context_length,
        dropout=0.0,
        norm_first=True,
        causal=True,
    ):
        super().__init__()
        self.p = dropout
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(
            d_in=d_model,
            d_out=d_model,
            context_length=context_length,
            dropout=dropout,
            num_heads=num_heads,
            causal=causal,
        )
        self.feed_forward = FeedForward(d_model=d_model, d_ff=d_ff, dropout=dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)

    def _attend(self, x):
        return F.dropout(self.attention(x), self.p, self.training)

    def _feed(self, x):
        return F.dropout(self.feed_forward(x), self.p, self.training)

    def forward(self, x):
        if self.norm_first:
            x = x + self._attend(self.norm1(x))
            x = x + self._feed(self.norm2(x))
        else:
            x = self.norm1(x + self._attend(x))
            x = self.norm2(x + self._feed(x))
        return x
