# style: lru_cache keyed by length and device
from functools import lru_cache

import torch
from torch import nn


@lru_cache(maxsize=16)
def future(n, device):
    return torch.full((n, n), True, device=device).triu(1)


def group_size(heads, kv_heads):
    if heads % kv_heads:
        raise ValueError(f"{heads} heads cannot share {kv_heads} heads of keys and values")
    return heads // kv_heads


def grouped_scores(queries, keys):
    b, h, n, d = queries.shape
    g = group_size(h, keys.shape[1])
    rows = queries.reshape(b, h // g, g * n, d)
    return (rows @ keys.mT).reshape(b, h, n, keys.shape[2]) / d ** 0.5


def grouped_context(weights, values):
    b, h, n, m = weights.shape
    g = group_size(h, values.shape[1])
    rows = weights.reshape(b, h // g, g * n, m)
    return (rows @ values).reshape(b, h, n, values.shape[3])


class GroupedQueryAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, num_kv_heads):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("num_heads does not divide d_out")
        group_size(num_heads, num_kv_heads)
        self.num_heads, self.num_kv_heads = num_heads, num_kv_heads
        self.context_length = context_length
        width = d_out // num_heads * num_kv_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, width, bias=False)
        self.W_value = nn.Linear(d_in, width, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError("too many tokens")
        q = self.W_query(x).reshape(b, n, self.num_heads, -1).transpose(1, 2)
        k = self.W_key(x).reshape(b, n, self.num_kv_heads, -1).transpose(1, 2)
        v = self.W_value(x).reshape(b, n, self.num_kv_heads, -1).transpose(1, 2)
        scores = grouped_scores(q, k).masked_fill(future(n, x.device), float("-inf"))
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(grouped_context(weights, v).transpose(1, 2).reshape(b, n, -1))
