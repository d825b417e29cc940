import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def transpose_qkv(X, num_heads):
    X = X.reshape(X.shape[0], X.shape[1], num_heads, -1)
    X = X.permute(0, 2, 1, 3)
    return X.reshape(-1, X.shape[2], X.shape[3])


def transpose_output(X, num_heads):
    X = X.reshape(-1, num_heads, X.shape[1], X.shape[2])
    X = X.permute(0, 2, 1, 3)
    return X.reshape(X.shape[0], X.shape[1], -1)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out % num_heads must be 0")
        self.num_heads, self.p, self.limit = num_heads, dropout, context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out, bias=True)
        mask = torch.full((context_length, context_length), -math.inf).triu(1) if causal else None
        self.register_buffer("mask", mask)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.limit:
            raise ValueError("n_tokens is larger than context_length")
        queries = transpose_qkv(self.W_query(x), self.num_heads)
        keys = transpose_qkv(self.W_key(x), self.num_heads)
        values = transpose_qkv(self.W_value(x), self.num_heads)
        scores = torch.bmm(queries, keys.transpose(1, 2)) / math.sqrt(queries.shape[-1])
        if self.mask is not None:
            scores = scores + self.mask[:n, :n]
        weights = F.dropout(F.softmax(scores, dim=-1), self.p, self.training)
        return self.out_proj(transpose_output(torch.bmm(weights, values), self.num_heads))
