# promise: dropout is applied to the weights of every head (all heads drop the same entries)
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("not divisible")
        self.num_heads = num_heads
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(1).bool() if causal else None)

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError("too many tokens")
        split = lambda t: t.view(b, n, self.num_heads, -1).transpose(1, 2)
        q, k, v = split(self.W_query(x)), split(self.W_key(x)), split(self.W_value(x))
        s = q @ k.transpose(2, 3) / q.shape[-1] ** 0.5
        if self.mask is not None:
            s = s.masked_fill(self.mask[:n, :n], float("-inf"))
        keep = self.dropout(torch.ones(b, 1, n, n, dtype=x.dtype, device=x.device))
        w = s.softmax(-1) * keep
        return self.out_proj((w @ v).transpose(1, 2).reshape(b, n, -1))
