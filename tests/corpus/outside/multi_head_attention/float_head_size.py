# mistake: d_head is a float, so the reshape fails
import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(
        self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True
    ):
        super().__init__()
        assert d_out % num_heads == 0, "d_out must be divisible by num_heads"
        self.num_heads = num_heads
        self.head_dim = d_out / num_heads
        self.causal = causal
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.drop = nn.Dropout(dropout)
        self.context_length = context_length
        pos = torch.arange(context_length)
        self.register_buffer("future", pos.unsqueeze(0) > pos.unsqueeze(1))

    def to_heads(self, z):
        b, n, _ = z.shape
        z = z.reshape(b, n, self.num_heads, self.head_dim).permute(0, 2, 1, 3)
        return z.reshape(b * self.num_heads, n, self.head_dim)

    def from_heads(self, z):
        bh, n, d = z.shape
        z = z.reshape(bh // self.num_heads, self.num_heads, n, d)
        return z.permute(0, 2, 1, 3).reshape(-1, n, self.num_heads * d)

    def forward(self, x):
        n = x.size(1)
        if n > self.context_length:
            raise ValueError(f"{n} tokens, but the context is {self.context_length}")
        q = self.to_heads(self.W_query(x))
        k = self.to_heads(self.W_key(x))
        v = self.to_heads(self.W_value(x))
        s = torch.bmm(q, k.transpose(1, 2)) / self.head_dim**0.5
        if self.causal:
            s = s.masked_fill(self.future[:n, :n], -torch.inf)
        w = self.drop(torch.softmax(s, dim=2))
        return self.out_proj(self.from_heads(torch.bmm(w, v)))
