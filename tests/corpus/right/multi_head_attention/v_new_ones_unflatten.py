# style: scores.new_ones, unflatten, chunk-free heads
import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads,
                 qkv_bias=False, causal=True):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("num_heads must divide d_out")
        self.h, self.max_tokens, self.causal = num_heads, context_length, causal
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        n = x.size(-2)
        if n > self.max_tokens:
            raise ValueError(f"{n} tokens, at most {self.max_tokens} are possible")
        q = self.W_query(x).unflatten(-1, (self.h, -1)).movedim(2, 1)
        k = self.W_key(x).unflatten(-1, (self.h, -1)).movedim(2, 1)
        v = self.W_value(x).unflatten(-1, (self.h, -1)).movedim(2, 1)
        scores = (q @ k.mT).div(q.size(-1) ** 0.5)
        if self.causal:
            future = scores.new_ones((n, n), dtype=torch.bool).triu_(1)
            scores.masked_fill_(future.expand_as(scores), -torch.inf)
        context = self.dropout(scores.softmax(-1)) @ v
        return self.out_proj(context.movedim(1, 2).flatten(-2))
