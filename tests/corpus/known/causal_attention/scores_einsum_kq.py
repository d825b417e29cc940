# mistake: query_and_key_layers_swapped
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.dim = d_out
        self.context_length = context_length
        self.drop_p = dropout
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        bias = torch.full((context_length, context_length), float("-inf"))
        self.register_buffer("additive", torch.triu(bias, diagonal=1))

    def forward(self, x):
        B, T, _ = x.shape
        if T > self.context_length:
            raise ValueError("sequence too long")
        Q = self.W_query(x)
        K = self.W_key(x)
        V = self.W_value(x)
        w = torch.einsum("bkd,bqd->bqk", Q, K) / math.sqrt(self.dim)
        w = w + self.additive[:T, :T]
        w = F.softmax(w, dim=-1)
        w = F.dropout(w, self.drop_p, self.training)
        return torch.einsum("bqk,bkd->bqd", w, V)
