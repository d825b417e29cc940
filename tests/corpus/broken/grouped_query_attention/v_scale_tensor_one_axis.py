# promise: sqrt(d_head) is a CPU tensor of shape (1,), not a number
import torch
from torch import nn


def _group(n_heads, n_kv):
    if n_heads % n_kv != 0:
        raise ValueError(f"{n_kv} heads of keys and values do not divide {n_heads} heads")
    return n_heads // n_kv


def grouped_scores(queries, keys):
    b, h, n, d = queries.shape
    kv = keys.shape[1]
    g = _group(h, kv)
    scores = queries.reshape(b, kv, g * n, d) @ keys.transpose(2, 3)
    scale = torch.sqrt(torch.tensor([d], dtype=torch.float32)).to(queries.dtype)
    return (scores / scale).reshape(b, h, n, -1)


def grouped_context(weights, values):
    b, h, n, m = weights.shape
    kv = values.shape[1]
    g = _group(h, kv)
    context = weights.reshape(b, kv, g * n, m) @ values
    return context.reshape(b, h, n, -1)


class GroupedQueryAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, num_kv_heads):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("num_heads must divide d_out")
        _group(num_heads, num_kv_heads)
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads
        self.d_head = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), 1).bool())

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.mask.shape[0]:
            raise ValueError("too many tokens")
        q = self.W_query(x).reshape(b, n, self.num_heads, self.d_head).transpose(1, 2)
        k = self.W_key(x).reshape(b, n, self.num_kv_heads, self.d_head).transpose(1, 2)
        v = self.W_value(x).reshape(b, n, self.num_kv_heads, self.d_head).transpose(1, 2)
        scores = grouped_scores(q, k).masked_fill(self.mask[:n, :n], float("-inf"))
        weights = self.dropout(scores.softmax(dim=-1))
        context = grouped_context(weights, v)
        return self.out_proj(context.transpose(1, 2).reshape(b, n, -1))
