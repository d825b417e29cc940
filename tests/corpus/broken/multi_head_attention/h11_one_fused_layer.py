# promise: W_query, W_key and W_value are nn.Linear layers (a single layer qkv holds all three, so the names and shapes differ)
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("d_out % num_heads != 0")
        self.num_heads = num_heads
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.max_len = context_length
        self.causal = causal
        if causal:
            self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1).bool())

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        if n > self.max_len:
            raise ValueError("n > context_length")
        qkv = self.qkv(x).view(b, n, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        s = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        if self.causal:
            s = s.masked_fill(self.mask[:n, :n], -torch.inf)
        z = self.dropout(s.softmax(dim=-1)) @ v
        return self.out_proj(z.transpose(1, 2).reshape(b, n, -1))
