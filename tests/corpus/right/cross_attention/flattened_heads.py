# right
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

    def split(self, t):
        b, n, d = t.shape
        h = self.num_heads
        return t.reshape(b, n, h, d // h).transpose(1, 2).reshape(b * h, n, d // h)

    def forward(self, x, context=None, key_mask=None):
        if context is not None:
            if self.causal:
                raise ValueError("causal with a context has no meaning")
        else:
            context = x
        b, n, _ = x.shape
        m = context.shape[1]
        keep = torch.ones(b, n, m, dtype=torch.bool, device=x.device)
        if key_mask is not None:
            context = context.clone()
            context[~key_mask] = 0.0
            keep &= key_mask[:, None, :]
        if self.causal:
            keep &= torch.ones(n, m, dtype=torch.bool, device=x.device).tril()
        keep = keep.repeat_interleave(self.num_heads, dim=0)
        q, k, v = self.split(self.W_query(x)), self.split(self.W_key(context)), self.split(self.W_value(context))
        s = torch.bmm(q, k.transpose(1, 2)) * (1 / math.sqrt(q.shape[2]))
        some = keep.any(dim=2, keepdim=True)
        s = s.masked_fill(~keep, float("-inf")).masked_fill(~some, 0)
        w = torch.where(some, s.softmax(dim=2), torch.zeros((), dtype=s.dtype, device=s.device))
        o = torch.bmm(self.dropout(w), v).reshape(b, self.num_heads, n, -1)
        return self.out_proj(o.transpose(1, 2).reshape(b, n, -1))


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
