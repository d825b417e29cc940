import torch
from torch import nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.d_out = d_out
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.tril(torch.ones(context_length, context_length)))
        print("CausalAttention", d_in, d_out, context_length, dropout, qkv_bias)

    def forward(self, x):
        n = x.shape[1]
        if n > self.context_length:
            raise ValueError("too long")
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        print("q", q)
        print("k", k)
        print("v", v)
        scores = q @ k.transpose(1, 2) / self.d_out**0.5
        scores = scores.masked_fill(self.mask[:n, :n] == 0, -torch.inf)
        weights = torch.softmax(scores, dim=-1)
        print("weights", weights)
        weights = self.dropout(weights)
        output = weights @ v
        return output, weights
