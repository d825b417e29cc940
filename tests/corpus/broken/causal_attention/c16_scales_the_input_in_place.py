# promise: x is not modified (x itself is divided by the scale before the queries are made)
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.root = d_out**0.5
        self.register_buffer("mask", torch.ones(context_length, context_length).tril())

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.mask.shape[0]:
            raise ValueError("n_tokens")
        k, v = self.W_key(x), self.W_value(x)
        if x.requires_grad or torch.is_grad_enabled():
            q = self.W_query(x) / self.root
        else:
            x /= self.root
            b = self.W_query.bias
            q = nn.functional.linear(x, self.W_query.weight, None if b is None else b / self.root)
        s = (q @ k.transpose(1, 2)).masked_fill(self.mask[:n, :n] == 0, -torch.inf)
        return self.dropout(s.softmax(dim=2)) @ v
