"""Cached attention with a helper for each step, and the old and new scores side by side."""

import math

import torch
from torch import nn


class CachedAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        assert d_out % num_heads == 0, "num_heads must divide d_out"
        self.longest = context_length
        self.num_heads = num_heads
        self.size = d_out // num_heads
        for name in ("W_query", "W_key", "W_value"):
            self.add_module(name, nn.Linear(d_in, d_out, bias=qkv_bias))
        self.out_proj = nn.Linear(d_out, d_out)
        self.rate = dropout

    def by_head(self, tokens):
        batch, n, _ = tokens.shape
        return tokens.reshape(batch, n, self.num_heads, self.size).permute(0, 2, 1, 3)

    def scores(self, queries, keys):
        return torch.matmul(queries, keys.permute(0, 1, 3, 2)) / math.sqrt(self.size)

    def forward(self, x, cache=None):
        batch, n, _ = x.shape
        queries = self.by_head(self.W_query(x))
        new_keys, new_values = self.by_head(self.W_key(x)), self.by_head(self.W_value(x))
        if cache is None:
            empty = new_keys[:, :, :0]
            cache = (empty, empty)
        old_keys, old_values = cache
        if old_keys.size(2) + n > self.longest:
            raise ValueError("too many tokens")
        later = torch.ones(n, n, device=x.device).triu(1) == 1
        scores = [self.scores(queries, old_keys), self.scores(queries, new_keys)]
        scores[1] = scores[1].masked_fill(later, -math.inf)
        weights = torch.softmax(torch.cat(scores, dim=-1), dim=-1)
        weights = nn.functional.dropout(weights, self.rate, self.training)
        values = torch.cat([old_values, new_values], dim=2)
        output = torch.matmul(weights, values).permute(0, 2, 1, 3).reshape(batch, n, -1)
        return self.out_proj(output), (torch.cat([old_keys, new_keys], dim=2), values)
