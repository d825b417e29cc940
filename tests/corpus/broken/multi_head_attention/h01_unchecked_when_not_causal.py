# promise: for more tokens than context_length, forward raises ValueError (only checked when there is a mask)
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("num_heads")
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.causal = causal
        if causal:
            self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), 1).bool())

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        q, k, v = (f(x).view(b, n, self.num_heads, -1).transpose(1, 2) for f in (self.W_query, self.W_key, self.W_value))
        s = q @ k.mT / q.shape[-1] ** 0.5
        if self.causal:
            if n > self.mask.shape[0]:
                raise ValueError("n_tokens > context_length")
            s = s.masked_fill(self.mask[:n, :n], -torch.inf)
        z = self.dropout(s.softmax(-1)) @ v
        return self.out_proj(z.transpose(1, 2).reshape(b, n, -1))
