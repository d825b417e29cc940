"""Causal attention with a float 0/1 mask kept as a non-persistent buffer."""

import math

import torch
import torch.nn.functional as F
from torch import nn


def causal_mask(size):
    return torch.tril(torch.ones(size, size))


def masked_weights(scores, mask):
    hidden = scores.masked_fill(mask == 0, float("-inf"))
    return torch.nan_to_num(F.softmax(hidden, dim=-1))


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.d_out = d_out
        self.context_length = context_length
        self.p = dropout
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.register_buffer("mask", causal_mask(context_length), persistent=False)

    def forward(self, x):
        n_tokens = x.size(1)
        if n_tokens > self.context_length:
            raise ValueError(f"n_tokens {n_tokens} exceeds context_length {self.context_length}")
        queries = self.W_query(x)
        keys = self.W_key(x)
        values = self.W_value(x)
        scores = torch.bmm(queries, keys.transpose(1, 2)) / math.sqrt(self.d_out)
        weights = masked_weights(scores, self.mask[:n_tokens, :n_tokens])
        weights = F.dropout(weights, self.p, self.training)
        return torch.bmm(weights, values)
