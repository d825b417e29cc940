# promise: MultiHeadAttention(..., qkv_bias=False, causal=True) (the default of causal is False)
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("num_heads must divide d_out")
        self.num_heads = num_heads
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(1).bool() if causal else None)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.context_length:
            raise ValueError("too long")
        q, k, v = (f(x).unflatten(2, (self.num_heads, -1)).movedim(2, 1) for f in (self.W_query, self.W_key, self.W_value))
        s = q @ k.mT / q.shape[-1] ** 0.5
        if self.mask is not None:
            s = torch.where(self.mask[:n, :n], -torch.inf, s)
        return self.out_proj((self.dropout(s.softmax(-1)) @ v).movedim(1, 2).flatten(2))
