import torch
from torch import nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.softmax = nn.Softmax(dim=-1)
        self.dropout = nn.Dropout(dropout)
        # 0 where a token may attend, -inf elsewhere
        mask = torch.full((context_length, context_length), -torch.inf).triu(1)
        self.register_buffer("mask", mask)

    def forward(self, x):
        n = x.shape[1]
        if n > self.mask.shape[0]:
            raise ValueError("too many tokens")
        query = self.W_query(x)
        scores = query @ self.W_key(x).mT / query.shape[-1] ** 0.5
        weights = self.softmax(scores + self.mask[:n, :n])
        return self.dropout(weights) @ self.W_value(x)
