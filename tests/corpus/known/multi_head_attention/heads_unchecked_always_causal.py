# mistake: heads_not_checked + causal_always
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class MultiHeadAttention(nn.Module):
    def __init__(
        self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True
    ):
        super().__init__()
        self.h = num_heads
        self.dk = d_out // num_heads
        self.n_ctx = context_length
        self.p = dropout
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        bias = torch.full((context_length, context_length), float("-inf")).triu(1)
        self.register_buffer("bias", bias)

    def forward(self, x):
        b, t, _ = x.shape
        if t > self.n_ctx:
            raise ValueError("too many tokens")
        q = self.W_query(x).unflatten(-1, (self.h, self.dk))
        k = self.W_key(x).unflatten(-1, (self.h, self.dk))
        v = self.W_value(x).unflatten(-1, (self.h, self.dk))
        att = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(self.dk)
        att = F.softmax(att + self.bias[:t, :t], dim=-1)
        att = F.dropout(att, self.p, self.training)
        out = torch.einsum("bhqk,bkhd->bqhd", att, v)
        return self.out_proj(out.flatten(2))
