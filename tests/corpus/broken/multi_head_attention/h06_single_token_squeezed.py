# promise: n_tokens may be anything from 1 to context_length (one token loses its axis)
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("heads")
        self.num_heads, self.d_head = num_heads, d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.limit = context_length
        self.causal = causal
        if causal:
            i = torch.arange(context_length)
            self.register_buffer("mask", i[:, None] < i[None, :])

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        if n > self.limit:
            raise ValueError("n_tokens")
        q = self.W_query(x).view(b, n, self.num_heads, self.d_head).transpose(1, 2)
        k = self.W_key(x).view(b, n, self.num_heads, self.d_head).transpose(1, 2)
        v = self.W_value(x).view(b, n, self.num_heads, self.d_head).transpose(1, 2)
        s = q @ k.transpose(2, 3) / self.d_head**0.5
        if self.causal:
            s = s.masked_fill(self.mask[:n, :n], -torch.inf)
        heads = (self.dropout(s.softmax(-1)) @ v).transpose(1, 2).flatten(2)
        return self.out_proj(heads.squeeze(1))
