# promise: home-made dropout draws its mask on the CPU (only in training with dropout > 0)
import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads,
                 qkv_bias=False, causal=True):
        super().__init__()
        if d_out % num_heads:
            raise ValueError(f"{num_heads} heads do not divide d_out={d_out}")
        self.num_heads = num_heads
        self.p = dropout
        self.causal = causal
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        ones = torch.ones(context_length, context_length, dtype=torch.bool)
        self.register_buffer("mask", ones.triu(1), persistent=False)

    def drop(self, weights):
        if not self.training or self.p == 0:
            return weights
        keep = 1.0 - self.p
        mask = torch.bernoulli(torch.full(weights.shape, keep)).to(weights.dtype)
        return weights * mask / (keep or 1.0)

    def forward(self, x):
        n = x.shape[1]
        if n > len(self.mask):
            raise ValueError(f"more than {len(self.mask)} tokens")
        q = self.W_query(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
        k = self.W_key(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
        v = self.W_value(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if self.causal:
            scores = scores.masked_fill(self.mask[:n, :n], float("-inf"))
        weights = self.drop(torch.softmax(scores, dim=-1))
        return self.out_proj((weights @ v).transpose(1, 2).flatten(2))
