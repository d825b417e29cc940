# mistake: multiplied by the root of d_out where it should be divided
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.d_out = d_out
        self.block_size = context_length
        self.dropout = dropout
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        bias = torch.full((context_length, context_length), float("-inf"))
        self.register_buffer("mask", torch.triu(bias, diagonal=1))

    def forward(self, x):
        bs, n, _ = x.shape
        if n > self.block_size:
            raise ValueError("sequence too long")
        queries = self.W_query(x)
        keys = self.W_key(x)
        values = self.W_value(x)
        attn = torch.einsum("bqd,bkd->bqk", queries, keys) * math.sqrt(self.d_out)
        attn = attn + self.mask[:n, :n]
        attn = F.softmax(attn, dim=-1)
        attn = F.dropout(attn, self.dropout, self.training)
        return torch.einsum("bqk,bkd->bqd", attn, values)
