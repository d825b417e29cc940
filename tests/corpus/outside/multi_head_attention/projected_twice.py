# mistake: out_proj is applied twice
import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(
        self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True
    ):
        super().__init__()
        assert d_out % num_heads == 0, "d_out must be divisible by num_heads"
        self.num_heads = num_heads
        self.d_head = d_out // num_heads
        self.causal = causal
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.attn_dropout = nn.Dropout(dropout)
        self.context_length = context_length
        pos = torch.arange(context_length)
        self.register_buffer("mask", pos.unsqueeze(0) > pos.unsqueeze(1))

    def to_heads(self, h):
        bs, n, _ = h.shape
        h = h.reshape(bs, n, self.num_heads, self.d_head).permute(0, 2, 1, 3)
        return h.reshape(bs * self.num_heads, n, self.d_head)

    def from_heads(self, h):
        bh, n, d = h.shape
        h = h.reshape(bh // self.num_heads, self.num_heads, n, d)
        return h.permute(0, 2, 1, 3).reshape(-1, n, self.num_heads * d)

    def forward(self, x):
        n = x.size(1)
        if n > self.context_length:
            raise ValueError(f"{n} tokens, but the context is {self.context_length}")
        queries = self.to_heads(self.W_query(x))
        keys = self.to_heads(self.W_key(x))
        values = self.to_heads(self.W_value(x))
        scores = torch.bmm(queries, keys.transpose(1, 2)) / self.d_head**0.5
        if self.causal:
            scores = scores.masked_fill(self.mask[:n, :n], -torch.inf)
        weights = self.attn_dropout(torch.softmax(scores, dim=2))
        merged = self.out_proj(self.from_heads(torch.bmm(weights, values)))
        return self.out_proj(merged)
