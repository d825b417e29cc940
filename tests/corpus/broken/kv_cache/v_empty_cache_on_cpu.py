# promise: the empty first cache is made on the CPU and then concatenated
import torch
from torch import nn


class CachedAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads,
                 qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("num_heads must divide d_out")
        self.num_heads = num_heads
        self.d_head = d_out // num_heads
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, cache=None):
        batch, n, _ = x.shape
        if cache is None:
            empty = torch.zeros(batch, self.num_heads, 0, self.d_head, dtype=x.dtype)
            cache = (empty, empty)
        old_keys, old_values = cache
        n_cached = old_keys.shape[2]
        total = n_cached + n
        if total > self.context_length:
            raise ValueError("the sequence is longer than context_length")

        shape = (batch, n, self.num_heads, self.d_head)
        queries = self.W_query(x).reshape(shape).transpose(1, 2)
        keys = torch.cat([old_keys, self.W_key(x).reshape(shape).transpose(1, 2)], dim=2)
        values = torch.cat([old_values, self.W_value(x).reshape(shape).transpose(1, 2)], dim=2)

        scores = queries @ keys.transpose(2, 3) / self.d_head ** 0.5
        future = torch.ones(n, total, dtype=torch.bool, device=x.device).triu(n_cached + 1)
        scores = scores.masked_fill(future, float("-inf"))
        weights = self.dropout(torch.softmax(scores, dim=-1))
        context = (weights @ values).transpose(1, 2).reshape(batch, n, -1)
        return self.out_proj(context), (keys, values)
