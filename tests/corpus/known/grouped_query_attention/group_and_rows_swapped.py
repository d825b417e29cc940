# mistake: heads_and_queries_swapped
# the stacked rows of a group are taken apart in the wrong order (queries first, then heads of the group), so scores land at another head and query if there are several of both
import math

import torch
from torch import Tensor, nn


def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    b, h, n, d = queries.shape
    kv, m = keys.shape[1], keys.shape[2]
    if h % kv:
        raise ValueError("num_kv_heads has to divide num_heads")
    g = h // kv
    stacked = queries.reshape(b, kv, g * n, d)
    scores = stacked @ keys.mT / math.sqrt(d)
    return scores.reshape(b, kv, n, g, m).transpose(2, 3).reshape(b, h, n, m)


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    b, h, n, m = weights.shape
    kv = values.shape[1]
    if h % kv:
        raise ValueError("num_kv_heads has to divide num_heads")
    g = h // kv
    stacked = weights.reshape(b, kv, g, n, m).reshape(b, kv, g * n, m)
    return (stacked @ values).reshape(b, kv, g, n, -1).reshape(b, h, n, -1)


class GroupedQueryAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, num_kv_heads):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("num_heads has to divide d_out")
        if num_heads % num_kv_heads:
            raise ValueError("num_kv_heads has to divide num_heads")
        self.num_heads, self.num_kv_heads = num_heads, num_kv_heads
        self.context_length = context_length
        self.d_head = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError("x is longer than the context")
        q = self.W_query(x).reshape(b, n, self.num_heads, self.d_head).transpose(1, 2)
        k = self.W_key(x).reshape(b, n, self.num_kv_heads, self.d_head).transpose(1, 2)
        v = self.W_value(x).reshape(b, n, self.num_kv_heads, self.d_head).transpose(1, 2)
        future = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
        weights = torch.softmax(grouped_scores(q, k).masked_fill(future, -math.inf), dim=-1)
        context = grouped_context(self.dropout(weights), v)
        return self.out_proj(context.transpose(1, 2).reshape(b, n, -1))
