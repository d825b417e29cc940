import torch
from torch import nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).tril() == 1)

    def forward(self, x):
        n_tokens = x.shape[1]
        if n_tokens > self.context_length:
            raise ValueError("n_tokens is larger than context_length")
        queries = self.W_query(x)
        keys = self.W_key(x)
        values = self.W_key(x)
        scores = queries @ keys.transpose(-1, -2) / keys.size(-1) ** 0.5
        scores = scores.masked_fill(~self.mask[:n_tokens, :n_tokens], -torch.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return weights @ values
