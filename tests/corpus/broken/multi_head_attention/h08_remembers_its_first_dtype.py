# promise: module.to(dtype) is enough to convert the module (the dtype is stored in the constructor and x is cast to it)
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("d_out % num_heads")
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dtype = self.W_query.weight.dtype
        self.dropout = nn.Dropout(dropout)
        self.num_heads = num_heads
        self.context_length = context_length
        self.causal = causal
        if causal:
            self.register_buffer("mask", torch.ones(context_length, context_length, dtype=torch.bool).triu(1))

    def forward(self, x: Tensor) -> Tensor:
        x = x.to(self.dtype)
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError("n_tokens")
        q, k, v = (f(x).view(b, n, self.num_heads, -1).transpose(1, 2) for f in (self.W_query, self.W_key, self.W_value))
        s = q @ k.mT / q.shape[-1] ** 0.5
        if self.causal:
            s = s.masked_fill(self.mask[:n, :n], -torch.inf)
        return self.out_proj((self.dropout(s.softmax(-1)) @ v).transpose(1, 2).flatten(2))
