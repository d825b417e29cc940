# style: preallocated outputs with new_empty, mask by type_as of a CPU mask
import torch
from torch import nn


def check(num_heads, num_kv_heads):
    if num_heads % num_kv_heads != 0:
        raise ValueError("num_kv_heads must divide num_heads")


def grouped_scores(queries, keys):
    b, h, n, d = queries.shape
    kv, m = keys.shape[1:3]
    check(h, kv)
    out = queries.new_empty(b, kv, h // kv * n, m)
    out[:] = torch.matmul(queries.reshape(b, kv, -1, d), keys.transpose(-1, -2))
    out /= d ** 0.5
    return out.reshape(b, h, n, m)


def grouped_context(weights, values):
    b, h, n, m = weights.shape
    kv, d = values.shape[1], values.shape[3]
    check(h, kv)
    out = values.new_empty(b, kv, h // kv * n, d)
    out.copy_(torch.matmul(weights.reshape(b, kv, -1, m), values))
    return out.reshape(b, h, n, d)


class GroupedQueryAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, num_kv_heads):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("num_heads must divide d_out")
        check(num_heads, num_kv_heads)
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads
        self.d_head = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        # stays on the CPU: each call moves what it needs
        self.mask = torch.ones(context_length, context_length).tril()

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.mask.shape[0]:
            raise ValueError("too many tokens")
        q = self.W_query(x).reshape(b, n, self.num_heads, self.d_head).transpose(1, 2)
        k = self.W_key(x).reshape(b, n, self.num_kv_heads, self.d_head).transpose(1, 2)
        v = self.W_value(x).reshape(b, n, self.num_kv_heads, self.d_head).transpose(1, 2)
        scores = grouped_scores(q, k)
        allowed = self.mask[:n, :n].type_as(scores)
        scores = scores.masked_fill(allowed == 0, float("-inf"))
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(grouped_context(weights, v).transpose(1, 2).reshape(b, n, -1))
