"""Grouped-query attention with bmm: each head of keys is a batch item of its own."""

import math

import torch
from torch import nn


def in_rows(tensor, num_kv_heads):
    """Put the rows of all heads of a group below each other, one batch item for each group."""
    batch, num_heads, rows, columns = tensor.size()
    assert num_heads % num_kv_heads == 0, "num_kv_heads must divide num_heads"
    together = num_heads // num_kv_heads * rows
    return tensor.contiguous().view(batch * num_kv_heads, together, columns)


def grouped_scores(queries, keys):
    shared = keys.flatten(0, 1).permute(0, 2, 1)
    scores = torch.bmm(in_rows(queries, keys.size(1)), shared) / math.sqrt(keys.size(3))
    return scores.view(*queries.shape[:3], keys.size(2))


def grouped_context(weights, values):
    context = torch.bmm(in_rows(weights, values.size(1)), values.flatten(0, 1))
    return context.view(*weights.shape[:3], values.size(3))


class GroupedQueryAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, num_kv_heads):
        super().__init__()
        assert d_out % num_heads == 0, "num_heads must divide d_out"
        assert num_heads % num_kv_heads == 0, "num_kv_heads must divide num_heads"
        self.size = d_out // num_heads
        self.rate = dropout
        self.W_query = nn.Linear(d_in, num_heads * self.size, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_heads * self.size, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_heads * self.size, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        later = torch.ones(context_length, context_length).triu(1) == 1
        self.register_buffer("later", later)

    def by_head(self, tokens):
        batch, n, width = tokens.shape
        return tokens.reshape(batch, n, width // self.size, self.size).permute(0, 2, 1, 3)

    def forward(self, x):
        batch, n, _ = x.shape
        if n > self.later.size(0):
            raise ValueError("the context is too short")
        scores = grouped_scores(self.by_head(self.W_query(x)), self.by_head(self.W_key(x)))
        scores = torch.where(self.later[:n, :n], -math.inf, scores)
        weights = nn.functional.dropout(torch.softmax(scores, dim=3), self.rate, self.training)
        context = grouped_context(weights, self.by_head(self.W_value(x)))
        return self.out_proj(context.permute(0, 2, 1, 3).reshape(batch, n, -1))
