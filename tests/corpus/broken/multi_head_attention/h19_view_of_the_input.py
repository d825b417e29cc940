# promise: x may be a view, such as a transposed tensor, and is not modified (x.view fails on one)
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("num_heads")
        self.h, self.limit = num_heads, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("future", torch.ones(context_length, context_length).triu(1) == 1 if causal else None)

    def forward(self, x: Tensor) -> Tensor:
        b, n, d = x.shape
        if n > self.limit:
            raise ValueError("n_tokens")
        tokens = x.view(-1, d)
        q, k, v = (f(tokens).view(b, n, self.h, -1).transpose(1, 2) for f in (self.W_query, self.W_key, self.W_value))
        s = torch.matmul(q, k.mT) / k.shape[-1] ** 0.5
        if self.future is not None:
            s = s.masked_fill(self.future[:n, :n], float("-inf"))
        return self.out_proj(torch.matmul(self.dropout(s.softmax(3)), v).transpose(1, 2).flatten(2))
