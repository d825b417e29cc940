# promise: there may be a single head (squeeze removes the head axis, and the merge then mixes up the axes)
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("num_heads")
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.H, self.N, self.causal = num_heads, context_length, causal
        if causal:
            self.register_buffer("mask", torch.tril(torch.ones(context_length, context_length)).bool())

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        if n > self.N:
            raise ValueError("n_tokens")
        q, k, v = (f(x).view(b, n, self.H, -1).transpose(1, 2).squeeze(1) for f in (self.W_query, self.W_key, self.W_value))
        s = q @ k.mT / k.shape[-1] ** 0.5
        if self.causal:
            s = s.masked_fill(~self.mask[:n, :n], -torch.inf)
        o = self.dropout(s.softmax(-1)) @ v
        return self.out_proj(o.transpose(1, 2).reshape(b, n, -1))
