# mistake: groups_not_checked
import math

import torch
from torch import nn


def grouped_scores(queries, keys):
    b, h, n, d = queries.shape
    kv = keys.size(1)
    if h % kv:
        raise ValueError("num_kv_heads must divide num_heads")
    group = h // kv
    q = queries.reshape(b, kv, group * n, d)
    s = torch.matmul(q, keys.transpose(-1, -2)) / math.sqrt(d)
    return s.reshape(b, h, n, keys.size(2))


def grouped_context(weights, values):
    b, h, n, m = weights.shape
    kv = values.size(1)
    if h % kv:
        raise ValueError("num_kv_heads must divide num_heads")
    group = h // kv
    w = weights.reshape(b, kv, group * n, m)
    return torch.matmul(w, values).reshape(b, h, n, values.size(3))


class GroupedQueryAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, num_kv_heads):
        super().__init__()
        assert d_out % num_heads == 0
        assert d_out % num_kv_heads == 0
        self.h, self.kv, self.d_k = num_heads, num_kv_heads, d_out // num_heads
        self.max_len = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, self.d_k * num_kv_heads, bias=False)
        self.W_value = nn.Linear(d_in, self.d_k * num_kv_heads, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.max_len:
            raise ValueError("too long")
        q = self.W_query(x).view(b, n, self.h, self.d_k).transpose(1, 2)
        k = self.W_key(x).view(b, n, self.kv, self.d_k).transpose(1, 2)
        v = self.W_value(x).view(b, n, self.kv, self.d_k).transpose(1, 2)
        s = grouped_scores(q, k)
        hidden = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
        s = s.masked_fill(hidden, float("-inf"))
        w = self.drop(s.softmax(-1))
        y = grouped_context(w, v).transpose(1, 2).reshape(b, n, -1)
        return self.out_proj(y)
