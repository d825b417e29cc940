# style: torch.vmap over heads and for the mask; additive mask from cumsum of x.new_full
import torch
from torch import nn


def head_scores(q, k):
    return q @ k.mT / q.shape[-1] ** 0.5


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads,
                 qkv_bias=False, causal=True):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("num_heads must divide d_out")
        self.num_heads = num_heads
        self.context_length = context_length
        self.causal = causal
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        n = x.shape[1]
        if n > self.context_length:
            raise ValueError("too many tokens")
        heads = (self.num_heads, -1)
        q = self.W_query(x).unflatten(2, heads)
        k = self.W_key(x).unflatten(2, heads)
        v = self.W_value(x).unflatten(2, heads)
        # (batch, heads, n, n)
        scores = torch.vmap(head_scores, in_dims=2, out_dims=1)(q, k)
        if self.causal:
            place = x.new_ones(n, dtype=torch.int64).cumsum(0)
            future = torch.vmap(lambda here: place > here)(place)
            scores = scores + torch.zeros_like(future, dtype=x.dtype).masked_fill_(future, -torch.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        context = torch.vmap(torch.matmul, in_dims=(1, 2), out_dims=2)(weights, v)
        return self.out_proj(context.flatten(2))
