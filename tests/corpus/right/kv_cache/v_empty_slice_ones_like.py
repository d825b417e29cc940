# style: empty cache as a slice keys[:, :, :0], mask by ones_like(scores).tril
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
        b, n, _ = x.shape
        shape = (b, n, self.num_heads, self.d_head)
        q = self.W_query(x).reshape(shape).transpose(1, 2)
        k = self.W_key(x).reshape(shape).transpose(1, 2)
        v = self.W_value(x).reshape(shape).transpose(1, 2)
        old_k, old_v = (k[:, :, :0], v[:, :, :0]) if cache is None else cache
        n_cached = old_k.shape[2]
        if n_cached + n > self.context_length:
            raise ValueError("too many tokens")
        k = torch.cat((old_k, k), dim=2)
        v = torch.cat((old_v, v), dim=2)
        scores = q @ k.mT / self.d_head ** 0.5
        seen = torch.ones_like(scores, dtype=torch.bool).tril(diagonal=n_cached)
        scores = scores.masked_fill(seen.logical_not(), float("-inf"))
        weights = self.dropout(scores.softmax(dim=-1))
        out = (weights @ v).transpose(1, 2).reshape(b, n, -1)
        return self.out_proj(out), (k, v)
