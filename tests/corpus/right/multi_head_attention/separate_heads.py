"""Multi-head attention that folds the heads into the batch axis and runs bmm on (batch * heads)."""

import math

import torch
import torch.nn.functional as F
from torch import nn


def split_heads(x, num_heads):
    """(batch, n_tokens, heads * d_head) -> (batch * heads, n_tokens, d_head), batch outermost."""
    return x.unflatten(-1, (num_heads, x.size(-1) // num_heads)).movedim(-2, 1).flatten(0, 1)


def merge_heads(x, batch, num_heads):
    """The way back: (batch * heads, n_tokens, d_head) -> (batch, n_tokens, heads * d_head)."""
    return x.unflatten(0, (batch, num_heads)).movedim(1, -2).flatten(-2)


class MultiHeadAttention(nn.Module):
    def __init__(
        self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True
    ):
        super().__init__()
        assert d_out % num_heads == 0, "d_out must be divisible by num_heads"
        self.num_heads = num_heads
        self.d_head = d_out // num_heads
        self.p = dropout
        self.causal = causal
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        if causal:
            mask = torch.tril(torch.ones(context_length, context_length))
            self.register_buffer("mask", mask, persistent=False)

    def forward(self, x):
        batch, n_tokens, _ = x.shape
        if n_tokens > self.context_length:
            raise ValueError("more tokens than context_length")
        queries = split_heads(self.W_query(x), self.num_heads)
        keys = split_heads(self.W_key(x), self.num_heads)
        values = split_heads(self.W_value(x), self.num_heads)

        scores = torch.bmm(queries, keys.mT) / math.sqrt(self.d_head)
        if self.causal:
            scores = scores.masked_fill(self.mask[:n_tokens, :n_tokens] == 0, float("-inf"))
        weights = torch.nan_to_num(F.softmax(scores, dim=-1))
        weights = F.dropout(weights, self.p, self.training)

        context = merge_heads(torch.bmm(weights, values), batch, self.num_heads)
        return self.out_proj(context)
