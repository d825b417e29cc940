"""Cached attention in few lines."""

import torch
from torch import nn


class CachedAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        assert d_out % num_heads == 0
        self.n, self.h, self.drop = context_length, num_heads, nn.Dropout(dropout)
        self.W_query, self.W_key, self.W_value = (
            nn.Linear(d_in, d_out, qkv_bias) for _ in range(3)
        )
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x, cache=None):
        q, k, v = (
            W(x).unflatten(2, (self.h, -1)).transpose(1, 2)
            for W in (self.W_query, self.W_key, self.W_value)
        )
        if cache:
            k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
        n, m = q.shape[2], k.shape[2]
        assert m <= self.n
        s = q @ k.mT / q.shape[3] ** 0.5 + x.new_full((n, m), -torch.inf).triu(m - n + 1)
        return self.out_proj((self.drop(s.softmax(-1)) @ v).transpose(1, 2).flatten(2)), (k, v)
