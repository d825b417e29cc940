# mistake: heads_joined_to_the_batch
# the projections are viewed as (batch, heads, tokens, d_head) without moving axes, so a head gets pieces of the wrong tokens instead of its columns
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
        if d_out % num_heads != 0:
            raise ValueError("num_heads must divide d_out")
        self.num_heads = num_heads
        self.d_head = d_out // num_heads
        self.context_length = context_length
        self.causal = causal
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError("too many tokens")
        q = self.W_query(x).view(b, self.num_heads, n, self.d_head)
        k = self.W_key(x).view(b, self.num_heads, n, self.d_head)
        v = self.W_value(x).view(b, self.num_heads, n, self.d_head)
        scores = q @ k.transpose(2, 3) / math.sqrt(self.d_head)
        if self.causal:
            mask = torch.triu(torch.ones(n, n, device=x.device), diagonal=1).bool()
            scores = scores.masked_fill(mask, float("-inf"))
        weights = self.dropout(torch.softmax(scores, dim=-1))
        out = (weights @ v).view(b, n, -1)
        return self.out_proj(out)
