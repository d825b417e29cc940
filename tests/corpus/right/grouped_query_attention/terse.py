"""Grouped-query attention in few lines: both products are one function."""

import torch
from torch import nn


def product(left, right):
    """Multiply the rows of all heads of a group with the one matrix that they share."""
    assert left.shape[1] % right.shape[1] == 0
    b, h, n, _ = left.shape
    return (left.reshape(b, right.shape[1], -1, left.shape[3]) @ right).reshape(b, h, n, -1)


def grouped_scores(queries, keys):
    return product(queries, keys.mT) / queries.shape[3] ** 0.5


def grouped_context(weights, values):
    return product(weights, values)


class GroupedQueryAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, num_kv_heads):
        super().__init__()
        assert d_out % num_heads == num_heads % num_kv_heads == 0
        self.n, self.d, self.drop = context_length, d_out // num_heads, nn.Dropout(dropout)
        self.W_query = nn.Linear(d_in, d_out, False)
        self.W_key, self.W_value = (
            nn.Linear(d_in, num_kv_heads * self.d, False) for _ in range(2)
        )
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x):
        n = x.shape[1]
        assert n <= self.n
        layers = self.W_query, self.W_key, self.W_value
        q, k, v = (W(x).unflatten(2, (-1, self.d)).transpose(1, 2) for W in layers)
        s = grouped_scores(q, k) + x.new_full((n, n), -torch.inf).triu(1)
        return self.out_proj(
            grouped_context(self.drop(s.softmax(-1)), v).transpose(1, 2).flatten(2)
        )
