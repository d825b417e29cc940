import math

import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        qkv_bias: bool = False,
        causal: bool = True,
    ) -> None:
        super().__init__()
        if d_out % num_heads:
            raise ValueError("d_out has to be a multiple of num_heads")
        self.num_heads = num_heads
        self.context_length = context_length
        self.causal = causal
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        ones = torch.ones(context_length, context_length, dtype=torch.bool)
        self.register_buffer("future", ones.triu(diagonal=1))

    def split(self, t: Tensor) -> Tensor:
        # (batch, tokens, d_out) -> (batch, heads, tokens, d_head)
        return t.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        n = x.size(1)
        if n > self.context_length:
            raise ValueError(f"at most {self.context_length} tokens, got {n}")
        q = self.split(self.W_query(x))
        k = self.split(self.W_key(x))
        v = self.split(self.W_value(x))
        scores = q @ k.mT / math.sqrt(q.size(-1))
        if self.causal:
            scores = scores.masked_fill(self.future[:n, :n], -math.inf)
        weights = self.dropout(scores.softmax(dim=-1))
        heads = weights @ v
        return self.out_proj(heads.transpose(1, 2).flatten(-2))
