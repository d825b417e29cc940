# mistake: causal_flag_lost
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
            context_length=context_length,
            dropout=dropout,
            num_heads=num_heads,
        )
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.dropout_p = dropout
        self.is_pre = norm_first

    def drop(self, y):
        return F.dropout(y, p=self.dropout_p, training=self.training)

    def forward_pre(self, x):
        sa = self.norm1(x)
        sa = self.attention(sa)
        x = x + self.drop(sa)
        mlp = self.norm2(x)
        mlp = self.feed_forward(mlp)
        x = x + self.drop(mlp)
        return x

    def forward_post(self, x):
        sa = self.attention(x)
        x = self.norm1(x + self.drop(sa))
        mlp = self.feed_forward(x)
        x = self.norm2(x + self.drop(mlp))
        return x

    def forward(self, x):
        if self.is_pre:
            return self.forward_pre(x)
        return self.forward_post(x)
