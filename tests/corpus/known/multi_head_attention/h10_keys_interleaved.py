# mistake: heads_of_different_columns
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("num_heads must divide d_out")
        self.num_heads = num_heads
        self.d_head = d_out // num_heads
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        mask = torch.tril(torch.ones(context_length, context_length)).bool() if causal else None
        self.register_buffer("mask", mask)

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError("sequence too long")
        q = self.W_query(x).view(b, n, self.num_heads, self.d_head).permute(0, 2, 1, 3)
        kT = self.W_key(x).view(b, n, self.d_head, self.num_heads).permute(0, 3, 2, 1)
        v = self.W_value(x).view(b, n, self.num_heads, self.d_head).permute(0, 2, 1, 3)
        scores = q @ kT / self.d_head ** 0.5
        if self.mask is not None:
            scores = scores.masked_fill(~self.mask[:n, :n], float("-inf"))
        ctx = self.dropout(torch.softmax(scores, dim=-1)) @ v
        return self.out_proj(ctx.permute(0, 2, 1, 3).reshape(b, n, -1))
