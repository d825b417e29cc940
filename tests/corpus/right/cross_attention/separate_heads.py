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

    def one_head(self, q, k, v, allowed):
        scores = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(q.shape[-1])
        if allowed is not None:
            top = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min).amax(-1, keepdim=True)
            weights = torch.exp(scores.masked_fill(~allowed, -torch.inf) - top.detach())
            total = weights.sum(-1, keepdim=True)
            weights = weights / torch.where(total == 0, torch.ones_like(total), total)
        else:
            weights = scores.softmax(dim=-1)
        return torch.bmm(self.dropout(weights), v)

    def forward(self, x, context=None, key_mask=None):
        if context is not None and self.causal:
            raise ValueError("no causal mask between two sequences")
        if context is None:
            context = x
        allowed = None
        if key_mask is not None:
            context = context.masked_fill(~key_mask[..., None], 0)
            allowed = key_mask[:, None, :].expand(-1, x.shape[1], -1)
        if self.causal:
            n = x.shape[1]
            lower = torch.ones(n, n, dtype=torch.bool, device=x.device).tril()
            allowed = lower.expand(len(x), n, n) if allowed is None else allowed & lower
        # each head of each sentence is a batch item of its own
        if allowed is not None:
            allowed = allowed.repeat_interleave(self.num_heads, dim=0)
        queries, keys, values = (
            projected.unflatten(-1, (self.num_heads, -1)).transpose(1, 2).flatten(0, 1)
            for projected in (self.W_query(x), self.W_key(context), self.W_value(context))
        )
        parts = self.one_head(queries, keys, values, allowed).unflatten(0, (len(x), -1))
        return self.out_proj(parts.transpose(1, 2).flatten(2))


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
