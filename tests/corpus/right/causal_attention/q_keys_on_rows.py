import math

import torch
from torch import Tensor, nn


class CausalAttention(nn.Module):
    """Transposed: tokens are columns, and the table of scores has a row for each key."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer(
            "too_early", torch.ones(context_length, context_length).tril(-1).bool(), persistent=False
        )

    def forward(self, x: Tensor) -> Tensor:
        n = x.size(1)
        if n > self.too_early.size(0):
            raise ValueError("too many tokens")
        Q = self.W_query(x).mT
        K = self.W_key(x)
        V = self.W_value(x).mT
        S = torch.bmm(K, Q).div(math.sqrt(Q.size(1)))  # [b, key, query]
        S = S.masked_fill(self.too_early[:n, :n], float("-inf"))
        E = (S - S.amax(dim=1, keepdim=True)).exp()
        W = E / E.sum(dim=1, keepdim=True)
        return torch.bmm(V, self.dropout(W)).mT
