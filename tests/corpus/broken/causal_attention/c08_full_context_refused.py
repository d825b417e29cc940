# promise: n_tokens may be anything from 1 to context_length (exactly context_length is refused)
import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.max_index = context_length
        self.register_buffer("mask", torch.full((context_length, context_length), float("-inf")).triu(1))

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n >= self.max_index:
            raise ValueError("sequence does not fit into the context")
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        s = q @ k.transpose(1, 2) / k.shape[-1] ** 0.5 + self.mask[:n, :n]
        return self.dropout(s.softmax(-1)) @ v
