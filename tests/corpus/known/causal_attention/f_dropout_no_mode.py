# mistake: dropout_in_eval
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.d_out = d_out
        self.max_len = context_length
        self.p = dropout
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        bias = torch.full((context_length, context_length), float("-inf"))
        self.register_buffer("bias", torch.triu(bias, diagonal=1))

    def forward(self, x):
        b, t, _ = x.shape
        if t > self.max_len:
            raise ValueError("sequence too long")
        q = self.W_query(x)
        k = self.W_key(x)
        v = self.W_value(x)
        att = torch.einsum("bqd,bkd->bqk", q, k) / math.sqrt(self.d_out)
        att = att + self.bias[:t, :t]
        att = F.softmax(att, dim=-1)
        att = F.dropout(att, self.p)
        return torch.einsum("bqk,bkd->bqd", att, v)
