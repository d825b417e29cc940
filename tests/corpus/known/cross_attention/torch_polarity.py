# mistake: mask_inverted
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

    def heads(self, t):
        return t.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def forward(self, x, context=None, key_mask=None):
        if context is None:
            context = x
        elif self.causal:
            raise ValueError("a causal layer attends to its own input only")
        if key_mask is not None:
            context = context.masked_fill(key_mask.unsqueeze(-1), 0.0)
        q = self.heads(self.W_query(x))
        k = self.heads(self.W_key(context))
        v = self.heads(self.W_value(context))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        allowed = torch.ones(scores.shape[-2:], dtype=torch.bool, device=x.device)
        if self.causal:
            allowed = allowed.tril()
        if key_mask is not None:
            allowed = allowed & ~key_mask[:, None, None, :]
        empty = ~allowed.any(-1, keepdim=True)
        scores = scores.masked_fill(~allowed & ~empty, float("-inf"))
        weights = scores.softmax(-1).masked_fill(empty, 0.0)
        out = self.dropout(weights) @ v
        return self.out_proj(out.transpose(1, 2).flatten(2))


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
        self.self_attention = CrossAttention(d_model, d_model, d_model, dropout, num_heads, causal=True)
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
