# mistake: chunk_alone_checked
# the oldest tokens fall out of the cache when the context is full, nothing is refused
import math

import torch
from torch import nn


class CachedAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        assert d_out % num_heads == 0
        self.max_len, self.h, self.d_k = context_length, num_heads, d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.drop = nn.Dropout(dropout)

    def split(self, t):
        b, n, _ = t.shape
        return t.view(b, n, self.h, self.d_k).permute(0, 2, 1, 3)

    def forward(self, x, cache=None):
        q, k, v = (
            self.split(self.W_query(x)),
            self.split(self.W_key(x)),
            self.split(self.W_value(x)),
        )
        past = 0
        if cache is not None:
            old_k, old_v = cache
            past = old_k.size(2)
            k = torch.cat((old_k, k), dim=2)[:, :, -self.max_len :]
            v = torch.cat((old_v, v), dim=2)[:, :, -self.max_len :]
            past = k.size(2) - x.size(1)
        total = past + x.size(1)
        if total > self.max_len:
            raise ValueError("sequence is too long")
        s = q @ k.transpose(-2, -1) / math.sqrt(self.d_k)
        rows = torch.arange(past, total, device=x.device)[:, None]
        cols = torch.arange(total, device=x.device)[None, :]
        s = s.masked_fill(cols > rows, float("-inf"))
        w = self.drop(s.softmax(-1))
        y = (w @ v).permute(0, 2, 1, 3).reshape(x.size(0), x.size(1), -1)
        return self.out_proj(y), (k, v)
