# mistake: scaled_by_root_of_d_out
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class MultiHeadAttention(nn.Module):
    def __init__(
        self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True
    ):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("num_heads must divide d_out")
        self.n_heads = num_heads
        self.d_head = d_out // num_heads
        self.max_len = context_length
        self.rate = dropout
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        bias = torch.zeros(context_length, context_length)
        if causal:
            bias = bias + torch.full_like(bias, float("-inf")).triu(1)
        self.register_buffer("m", bias)

    def forward(self, x):
        B, T, _ = x.shape
        if T > self.max_len:
            raise ValueError("too many tokens")
        Q = self.W_query(x).unflatten(-1, (self.n_heads, self.d_head))
        K = self.W_key(x).unflatten(-1, (self.n_heads, self.d_head))
        V = self.W_value(x).unflatten(-1, (self.n_heads, self.d_head))
        a = torch.einsum("bqhd,bkhd->bhqk", Q, K) / math.sqrt(Q.size(2) * Q.size(3))
        a = F.softmax(a + self.m[:T, :T], dim=-1)
        a = F.dropout(a, self.rate, self.training)
        o = torch.einsum("bhqk,bkhd->bqhd", a, V)
        return self.out_proj(o.flatten(2))
