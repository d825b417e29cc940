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
            raise ValueError("causal needs context=None")
        source = x if context is None else context
        batch, n_queries, _ = x.shape
        n_keys = source.shape[1]
        if key_mask is not None:
            source = torch.where(key_mask[:, :, None], source, torch.zeros_like(source))
        q = self.W_query(x).reshape(batch, n_queries, self.num_heads, -1)
        k = self.W_key(source).reshape(batch, n_keys, self.num_heads, -1)
        v = self.W_value(source).reshape(batch, n_keys, self.num_heads, -1)
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
        hidden = torch.zeros(batch, 1, n_queries, n_keys, dtype=torch.bool, device=x.device)
        if self.causal:
            hidden = hidden | torch.ones_like(hidden).triu(1)
        if key_mask is not None:
            hidden = hidden | key_mask.logical_not()[:, None, None, :]
        nothing = hidden.all(dim=3, keepdim=True)
        scores = torch.where(hidden & ~nothing, torch.full_like(scores, -torch.inf), scores)
        weights = torch.softmax(scores, dim=3) * (~nothing).to(scores.dtype)
        weights = self.dropout(weights)
        return self.out_proj(torch.einsum("bhqk,bkhd->bqhd", weights, v).reshape(batch, n_queries, -1))


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
