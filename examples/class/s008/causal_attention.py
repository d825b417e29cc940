import torch
from torch import nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.context_length = context_length
        self.inv_sqrt_d = 1 / d_out**0.5
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.drop = nn.Dropout(dropout)
        self.register_buffer("past", torch.tril(torch.ones(context_length, context_length)).bool())

    def forward(self, x):
        length = x.shape[1]
        if length > self.context_length:
            raise ValueError(f"context is {self.context_length} but there are {length} tokens")
        query, key, value = self.W_query(x), self.W_key(x), self.W_value(x)
        sim = torch.bmm(query, torch.swapaxes(key, 1, 2)) * self.inv_sqrt_d
        sim = torch.where(self.past[:length, :length], sim, float("-inf"))
        p = torch.softmax(sim, -1)
        return torch.bmm(self.drop(p), value)
