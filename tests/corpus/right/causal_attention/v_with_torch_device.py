# style: mask built inside `with torch.device(x.device)`
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

    def forward(self, x):
        n = x.shape[1]
        if n > self.context_length:
            raise ValueError(f"{n} > {self.context_length} tokens")
        with torch.device(x.device):
            future = torch.triu(torch.ones(n, n), diagonal=1).bool()
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = q @ k.transpose(-2, -1) / k.shape[-1] ** 0.5
        scores = scores.masked_fill(future, -torch.inf)
        return self.dropout(scores.softmax(dim=-1)) @ v
