# promise: grouped_context writes its result into torch.zeros on the CPU
import torch
import torch.nn as nn


def grouped_scores(queries, keys):
    num_heads, num_kv_heads = queries.size(1), keys.size(1)
    if num_heads % num_kv_heads:
        raise ValueError("num_kv_heads must divide num_heads")
    grouped = queries.unflatten(1, (num_kv_heads, num_heads // num_kv_heads))
    scores = torch.einsum("bkgqd,bkud->bkgqu", grouped, keys)
    return scores.flatten(1, 2) / queries.size(-1) ** 0.5


def grouped_context(weights, values):
    batch, num_heads, n_queries, n_keys = weights.shape
    num_kv_heads, d_value = values.size(1), values.size(-1)
    if num_heads % num_kv_heads:
        raise ValueError("num_kv_heads must divide num_heads")
    group = num_heads // num_kv_heads
    context = torch.zeros(batch, num_kv_heads, group * n_queries, d_value, dtype=values.dtype)
    context[...] = weights.reshape(batch, num_kv_heads, group * n_queries, n_keys) @ values
    return context.reshape(batch, num_heads, n_queries, d_value)


class GroupedQueryAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, num_kv_heads):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("num_heads must divide d_out")
        if num_heads % num_kv_heads:
            raise ValueError("num_kv_heads must divide num_heads")
        self.context_length = context_length
        self.num_heads, self.num_kv_heads = num_heads, num_kv_heads
        d_kv = num_kv_heads * (d_out // num_heads)
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_kv, bias=False)
        self.W_value = nn.Linear(d_in, d_kv, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        n = x.size(1)
        if n > self.context_length:
            raise ValueError("too many tokens")
        q = self.W_query(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
        k = self.W_key(x).unflatten(-1, (self.num_kv_heads, -1)).transpose(1, 2)
        v = self.W_value(x).unflatten(-1, (self.num_kv_heads, -1)).transpose(1, 2)
        future = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
        scores = grouped_scores(q, k).masked_fill(future, float("-inf"))
        weights = self.dropout(torch.softmax(scores, -1))
        return self.out_proj(grouped_context(weights, v).transpose(1, 2).flatten(2))
