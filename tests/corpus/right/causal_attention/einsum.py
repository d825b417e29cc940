"""Single-head causal attention in einsum notation (b batch, q/k tokens, i input, o output)."""

import torch
from torch import nn


def project(layer, x):
    y = torch.einsum("bti,oi->bto", x, layer.weight)
    return y if layer.bias is None else y + layer.bias


def softmax(s):
    e = torch.exp(s - s.detach().amax(-1, keepdim=True))
    return e / torch.einsum("bqk->bq", e)[..., None]


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.context_length = context_length
        future = torch.ones(context_length, context_length, dtype=torch.bool).triu(diagonal=1)
        self.register_buffer("future", future)

    def forward(self, x):
        t = x.shape[1]
        if t > self.context_length:
            raise ValueError(f"{t} tokens do not fit into a context of {self.context_length}")
        Q, K, V = project(self.W_query, x), project(self.W_key, x), project(self.W_value, x)
        s = torch.einsum("bqo,bko->bqk", Q, K) / K.shape[-1] ** 0.5
        w = softmax(s.masked_fill(self.future[:t, :t], -torch.inf))
        return torch.einsum("bqk,bko->bqo", self.dropout(w), V)
