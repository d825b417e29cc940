# promise: a closure keeps the old CPU tensor although the mask is also a buffer
import math

import torch
import torch.nn as nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.scale = 1.0 / math.sqrt(d_out)

        mask = torch.ones(context_length, context_length).triu(1).bool()
        self.register_buffer("mask", mask)

        def hide_future(scores):
            n = scores.size(-1)
            if n > context_length:
                raise ValueError("the sequence is longer than context_length")
            return scores.masked_fill(mask[:n, :n], -math.inf)

        self.hide_future = hide_future

    def forward(self, x):
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = self.hide_future(torch.bmm(q, k.transpose(1, 2)) * self.scale)
        attn = scores.softmax(dim=-1)
        return torch.bmm(self.dropout(attn), v)
