# promise: there are no other parameters (a table of learned positions, all zero at the start, is added to the queries)
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("num_heads")
        self.num_heads, self.causal = num_heads, causal
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.positions = nn.Parameter(torch.zeros(context_length, d_out))
        self.dropout = nn.Dropout(dropout)
        if causal:
            self.register_buffer("mask", torch.ones(context_length, context_length).triu(1).bool())

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        if n > self.positions.shape[0]:
            raise ValueError("n_tokens")
        split = lambda t: t.view(b, n, self.num_heads, -1).transpose(1, 2)
        q, k, v = split(self.W_query(x) + self.positions[:n]), split(self.W_key(x)), split(self.W_value(x))
        s = q @ k.transpose(2, 3) / k.shape[-1] ** 0.5
        if self.causal:
            s = s.masked_fill(self.mask[:n, :n], -torch.inf)
        return self.out_proj((self.dropout(s.softmax(-1)) @ v).transpose(1, 2).reshape(b, n, -1))
