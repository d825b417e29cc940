# mistake: heads_joined_to_the_batch
import math

import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    """Attention in num_heads independent heads, each on its own d_out // num_heads columns."""

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
        self.d_k = d_out // num_heads
        self.context_length = context_length
        self.causal = causal
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        B, T, _ = x.size()
        if T > self.context_length:
            raise ValueError(f"{T} tokens > {self.context_length}")

        # 1) projections, one (B, heads, T, d_k) block each
        q = self.W_query(x).view(B, self.num_heads, T, self.d_k)
        k = self.W_key(x).view(B, self.num_heads, T, self.d_k)
        v = self.W_value(x).view(B, self.num_heads, T, self.d_k)

        # 2) scaled scores
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(self.d_k)
        if self.causal:
            mask = torch.tril(torch.ones(T, T, device=x.device)) == 0
            scores = scores.masked_fill(mask, float("-inf"))
        attn = self.dropout(torch.softmax(scores, dim=-1))

        # 3) back to (B, T, d_out)
        out = torch.matmul(attn, v).reshape(B, T, -1)
        return self.out_proj(out)
