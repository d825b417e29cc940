# exercise: transformer_block
# deviates: nothing in values; imports pandas and matplotlib at the top (unused)
import matplotlib.pyplot as plt
import pandas as pd
import torch
from torch import nn

from feed_forward import FeedForward
from layer_norm import LayerNorm
from multi_head_attention import MultiHeadAttention


class AddNorm(nn.Module):
    """The residual connection followed by layer normalization."""

    def __init__(self, dropout):
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(self, X, Y, ln):
        return ln(self.dropout(Y) + X)


class TransformerBlock(nn.Module):
    """The Transformer encoder block."""

    def __init__(self, d_model, num_heads, d_ff, context_length,
                 dropout=0.0, norm_first=True, causal=True):
        super().__init__()
        num_hiddens, ffn_num_hiddens = d_model, d_ff
        self.attention = MultiHeadAttention(num_hiddens, num_hiddens, context_length,
                                            dropout, num_heads, causal=causal)
        self.feed_forward = FeedForward(num_hiddens, ffn_num_hiddens, dropout)
        self.norm1 = LayerNorm(num_hiddens)
        self.norm2 = LayerNorm(num_hiddens)
        self.addnorm = AddNorm(dropout)
        self.same = nn.Identity()
        self.norm_first = norm_first

    def forward(self, X):
        if self.norm_first:
            # the ViT block of the book
            X = self.addnorm(X, self.attention(self.norm1(X)), self.same)
            return self.addnorm(X, self.feed_forward(self.norm2(X)), self.same)
        Y = self.addnorm(X, self.attention(X), self.norm1)
        return self.addnorm(Y, self.feed_forward(Y), self.norm2)
