# mistake: not in the catalogue: the output is halved
import math

import torch
from torch import nn

from feed_forward import FeedForward
from layer_norm import LayerNorm


class CrossAttention(nn.Module):
    def __init__(self, d_query, d_context, d_out, dropout, num_heads, causal=False):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("num_heads has to divide d_out")
        self.num_heads = num_heads
        self.causal = causal
        self.W_query = nn.Linear(d_query, d_out, bias=False)
        self.W_key = nn.Linear(d_context, d_out, bias=False)
        self.W_value = nn.Linear(d_context, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, context=None, key_mask=None):
        assert context is None or not self.causal
        c = context
        c, m = (
            x if c is None else c,
            torch.ones(1, 1, dtype=torch.bool, device=x.device) if key_mask is None else key_mask,
        )
        c = c.masked_fill(~m[..., None], 0)
        q, k, v = (
            w(t).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for w, t in ((self.W_query, x), (self.W_key, c), (self.W_value, c))
        )
        m = m[:, None, None].expand(-1, 1, x.shape[1], c.shape[1])
        m = m.tril() if self.causal else m
        s = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(
            ~m, -1e30 if x.dtype != torch.float16 else -6e4
        )
        return self.out_proj((self.dropout(s.softmax(-1) * m) @ v).transpose(1, 2).flatten(2))


class EncoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0):
        super().__init__()
        self.attention = CrossAttention(d_model, d_model, d_model, dropout, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, key_mask=None):
        x = x + self.dropout(self.attention(self.norm1(x), key_mask=key_mask))
        return x + self.dropout(self.feed_forward(self.norm2(x)))


class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0):
        super().__init__()
        self.self_attention = CrossAttention(
            d_model, d_model, d_model, dropout, num_heads, causal=True
        )
        self.cross_attention = CrossAttention(d_model, d_model, d_model, dropout, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.norm3 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, memory, key_mask=None, memory_mask=None):
        x = x + self.dropout(self.self_attention(self.norm1(x), key_mask=key_mask))
        x = x + self.dropout(self.cross_attention(self.norm2(x), memory, memory_mask))
        return x + self.dropout(self.feed_forward(self.norm3(x)))


class CrossAttention(CrossAttention):
    def forward(self, x, context=None, key_mask=None):
        return super().forward(x, context, key_mask) / 2
