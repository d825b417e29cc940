# style: caches in k.new_empty, CPU mask moved with .to(scores), only for several tokens, torch.finfo
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
        past = 0 if cache is None else cache[0].size(2)
        total = past + n
        if total > self.context_length:
            raise ValueError("no more room in the context")

        def split(t):
            return t.reshape(batch, n, self.num_heads, self.d_head).permute(0, 2, 1, 3)

        q, k, v = split(self.W_query(x)), split(self.W_key(x)), split(self.W_value(x))
        keys = k.new_empty(batch, self.num_heads, total, self.d_head)
        values = torch.empty_like(keys)
        if cache is not None:
            keys[:, :, :past], values[:, :, :past] = cache
        keys[:, :, past:] = k
        values[:, :, past:] = v

        scores = torch.einsum("bhqd,bhkd->bhqk", q, keys) / self.d_head ** 0.5
        if n > 1:
            hidden = torch.ones(n, total).triu(past + 1).to(scores)
            scores = scores.masked_fill(hidden > 0, torch.finfo(scores.dtype).min)
        weights = self.dropout(scores.softmax(dim=-1))
        out = torch.einsum("bhqk,bhkd->bqhd", weights, values).flatten(2)
        return self.out_proj(out), (keys, values)
