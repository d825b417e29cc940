# promise: masks in a dict by length stay on the device of the first call (CPU call, then module.to("cuda"))
import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads,
                 qkv_bias=False, causal=True):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("num_heads has to divide d_out")
        self.d_out, self.num_heads = d_out, num_heads
        self.d_head = d_out // num_heads
        self.context_length = context_length
        self.causal = causal
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self._masks = {}

    def _mask(self, n, device):
        if n not in self._masks:
            self._masks[n] = torch.ones(n, n, dtype=torch.bool, device=device).triu(1)
        return self._masks[n]

    def forward(self, x):
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError("sequence longer than the context")
        shape = (b, n, self.num_heads, self.d_head)
        q = self.W_query(x).reshape(shape)
        k = self.W_key(x).reshape(shape)
        v = self.W_value(x).reshape(shape)
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(self.d_head)
        if self.causal:
            scores = scores.masked_fill(self._mask(n, x.device), -torch.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        out = torch.einsum("bhqk,bkhd->bqhd", weights, v)
        return self.out_proj(out.reshape(b, n, self.d_out))
