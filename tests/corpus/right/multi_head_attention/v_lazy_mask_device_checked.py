# style: lazily cached mask (plain attribute), checked for its size and its device
import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads,
                 qkv_bias=False, causal=True):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out is no multiple of num_heads")
        self.num_heads = num_heads
        self.context_length = context_length
        self.causal = causal
        self.scale = math.sqrt(d_out // num_heads)
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self._mask = None

    def _future(self, n, device):
        mask = self._mask
        if mask is None or mask.device != device or mask.shape[0] < n:
            mask = torch.ones(n, n).triu(1).bool().to(device)
            self._mask = mask
        return mask[:n, :n]

    def forward(self, x):
        batch, n, _ = x.shape
        if n > self.context_length:
            raise ValueError("more tokens than context_length")
        q, k, v = (
            layer(x).reshape(batch, n, self.num_heads, -1).transpose(1, 2)
            for layer in (self.W_query, self.W_key, self.W_value)
        )
        scores = q @ k.transpose(2, 3) / self.scale
        if self.causal:
            scores = scores.masked_fill(self._future(n, x.device), -math.inf)
        weights = self.dropout(scores.softmax(dim=-1))
        return self.out_proj((weights @ v).transpose(1, 2).reshape(batch, n, -1))
