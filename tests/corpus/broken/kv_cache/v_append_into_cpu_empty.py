# promise: the longer cache is a preallocated CPU tensor, filled by slices
import math

import torch
import torch.nn as nn


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

    def _split(self, t):
        return t.unflatten(-1, (self.num_heads, self.d_head)).transpose(1, 2)

    @staticmethod
    def _append(old, new):
        """A new tensor with the old tokens, then the new ones."""
        b, h, n, d = new.shape
        n_old = old.shape[2]
        out = torch.empty(b, h, n_old + n, d, dtype=new.dtype)
        out[:, :, :n_old] = old
        out[:, :, n_old:] = new
        return out

    def forward(self, x, cache=None):
        n = x.shape[1]
        n_cached = 0 if cache is None else cache[0].shape[2]
        if n_cached + n > self.context_length:
            raise ValueError(f"{n_cached} + {n} tokens, but at most {self.context_length}")
        q, k, v = self._split(self.W_query(x)), self._split(self.W_key(x)), self._split(self.W_value(x))
        if cache is not None:
            k = self._append(cache[0], k)
            v = self._append(cache[1], v)
        scores = q @ k.mT / math.sqrt(self.d_head)
        here = torch.arange(n_cached, n_cached + n, device=x.device)
        there = torch.arange(n_cached + n, device=x.device)
        scores = scores.masked_fill(there > here[:, None], -math.inf)
        weights = self.dropout(scores.softmax(-1))
        out = self.out_proj((weights @ v).transpose(1, 2).flatten(2))
        return out, (k, v)
