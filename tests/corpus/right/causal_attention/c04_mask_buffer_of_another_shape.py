import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.context_length = context_length
        self.dropout = nn.Dropout(dropout)
        size = context_length + 1
        self.register_buffer("mask", torch.tril(torch.ones(size, size)).view(1, size, size))

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.context_length:
            raise ValueError("x has too many tokens")
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        s = torch.bmm(q, k.transpose(1, 2)) / q.shape[2] ** 0.5
        s = s.masked_fill(self.mask[:, :n, :n] == 0, float("-inf"))
        return torch.bmm(self.dropout(s.softmax(dim=2)), v)
