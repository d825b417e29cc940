# mistake: context_one_short + feed_forward_without_dropout
import torch.nn as nn
import torch.nn.functional as F

from feed_forward import FeedForward
from layer_norm import LayerNorm
from multi_head_attention import MultiHeadAttention


class TransformerBlock(nn.Module):
    def __init__(
        self, d_model, num_heads, d_ff, context_length, dropout=0.0, norm_first=True, causal=True
    ):
        super().__init__()
        self.attention = MultiHeadAttention(
            d_in=d_model,
            d_out=d_model,
            context_length=context_length - 1,
            dropout=dropout,
            num_heads=num_heads,
            causal=causal,
        )
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.rate = dropout
        self.norm_first = norm_first

    def drop(self, t):
        return F.dropout(t, p=self.rate, training=self.training)

    def forward_pre(self, x):
        attn = self.norm1(x)
        attn = self.attention(attn)
        x = x + self.drop(attn)
        ff = self.norm2(x)
        ff = self.feed_forward(ff)
        x = x + self.drop(ff)
        return x

    def forward_post(self, x):
        attn = self.attention(x)
        x = self.norm1(x + self.drop(attn))
        ff = self.feed_forward(x)
        x = self.norm2(x + self.drop(ff))
        return x

    def forward(self, x):
        if self.norm_first:
            return self.forward_pre(x)
        return self.forward_post(x)
