"""Cached attention: einsum with an axis for the heads, positions compared for the mask."""

import torch
from torch import nn


class CachedAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("heads of unequal size")
        self.context_length, self.num_heads = context_length, num_heads
        self.W_query = nn.Linear(d_in, d_out, qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.drop = nn.Dropout(dropout)

    def forward(self, x, cache=None):
        q, k, v = (
            torch.einsum("bnhd->bhnd", layer(x).unflatten(-1, (self.num_heads, -1)))
            for layer in (self.W_query, self.W_key, self.W_value)
        )
        past = 0
        if cache is not None:
            past = cache[0].shape[-2]
            k, v = (torch.cat(pair, dim=-2) for pair in zip(cache, (k, v)))
        if k.shape[-2] > self.context_length:
            raise ValueError("the context is full")
        place = torch.arange(k.shape[-2], device=x.device)
        hidden = place[None, :] > place[past:, None]
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k) * q.shape[-1] ** -0.5
        weights = self.drop(scores.masked_fill(hidden, float("-inf")).softmax(-1))
        merged = torch.einsum("bhqk,bhkd->bqhd", weights, v).flatten(-2)
        return self.out_proj(merged), (k, v)
