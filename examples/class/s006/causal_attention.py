import torch
from torch import nn
from torch.nn.functional import dropout as drop
from torch.nn.functional import softmax


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.rate = dropout
        self.d_k = d_out
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        blocked = torch.ones(context_length, context_length).triu(1).bool()
        self.register_buffer("blocked", blocked)

    def forward(self, x):
        n = x.shape[-2]
        if n > len(self.blocked):
            raise ValueError("sequence is too long")
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = (q @ k.mT) / (self.d_k ** 0.5)
        scores = scores.masked_fill(self.blocked[:n, :n], -float("inf"))
        weights = drop(softmax(scores, dim=-1), self.rate, training=self.training)
        return weights @ v
