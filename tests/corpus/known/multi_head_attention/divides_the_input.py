# mistake: d_in_checked_for_heads
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
        if d_in % num_heads != 0:
            raise ValueError(f"{num_heads} heads do not divide d_in {d_in}")
        self.d_out = d_out
        self.num_heads = num_heads
        self.d_head = d_out // num_heads
        self.context_length = context_length
        self.causal = causal
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        mask = torch.ones(context_length, context_length, dtype=torch.bool).triu(1)
        self.register_buffer("mask", mask)

    def split(self, t: Tensor) -> Tensor:
        b, n, _ = t.shape
        return t.view(b, n, self.num_heads, self.d_head).transpose(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        b, n_tokens, _ = x.shape
        if n_tokens > self.context_length:
            raise ValueError(f"{n_tokens} tokens, but context_length is {self.context_length}")
        queries = self.split(self.W_query(x))
        keys = self.split(self.W_key(x))
        values = self.split(self.W_value(x))
        scores = queries @ keys.transpose(2, 3) / math.sqrt(self.d_head)
        if self.causal:
            scores = scores.masked_fill(self.mask[:n_tokens, :n_tokens], float("-inf"))
        weights = self.dropout(torch.softmax(scores, dim=-1))
        context = (weights @ values).transpose(1, 2).reshape(b, n_tokens, self.d_out)
        return self.out_proj(context)
