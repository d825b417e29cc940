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

    def forward(self, x, context=None, key_mask=None):
        if self.causal and context is not None:
            raise ValueError("causal attention is self-attention")
        memory = context if context is not None else x
        bias = torch.zeros(1, x.size(1), memory.size(1), device=x.device)
        if self.causal:
            bias = bias + torch.full_like(bias, -torch.inf).triu(diagonal=1)
        if key_mask is not None:
            memory = memory.masked_fill(torch.logical_not(key_mask)[:, :, None], 0.0)
            bias = bias + torch.zeros_like(key_mask, dtype=bias.dtype).masked_fill(~key_mask, -torch.inf)[:, None]
        alive = (bias > -torch.inf).any(-1, keepdim=True)
        bias = torch.where(alive, bias, torch.zeros_like(bias)).unsqueeze(1)
        d_head = self.W_query.out_features // self.num_heads
        q = self.W_query(x).view(x.size(0), -1, self.num_heads, d_head).permute(0, 2, 1, 3)
        k = self.W_key(memory).view(x.size(0), -1, self.num_heads, d_head).permute(0, 2, 3, 1)
        v = self.W_value(memory).view(x.size(0), -1, self.num_heads, d_head).permute(0, 2, 1, 3)
        scores = torch.matmul(q, k) / d_head**0.5
        wide = torch.float64 if scores.dtype == torch.float64 else torch.float32
        p = torch.softmax(scores.to(wide) + bias, -1) * alive.unsqueeze(1)
        mixed = self.dropout(p.to(v.dtype)) @ v
        return self.out_proj(mixed.permute(0, 2, 1, 3).reshape(x.size(0), x.size(1), -1))


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
        def residual(stream, norm, layer):
            return stream + self.dropout(layer(norm(stream)))

        x = residual(x, self.norm1, lambda y: self.self_attention(y, None, key_mask))
        x = residual(x, self.norm2, lambda y: self.cross_attention(y, memory, memory_mask))
        return residual(x, self.norm3, self.feed_forward)
