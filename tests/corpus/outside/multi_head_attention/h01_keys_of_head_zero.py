# mistake: all heads use the keys of head 0 (slicing slip when broadcasting)
# true: head 0 is right, the other heads have wrong weights; one head is right
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        self.num_heads, self.d_head = num_heads, d_out // num_heads
        self.context_length, self.causal = context_length, causal
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        if causal:
            self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), 1).bool())

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError("too many tokens")
        q = self.W_query(x).view(b, n, self.num_heads, self.d_head).transpose(1, 2)
        k = self.W_key(x).view(b, n, self.num_heads, self.d_head).transpose(1, 2)[:, :1]
        v = self.W_value(x).view(b, n, self.num_heads, self.d_head).transpose(1, 2)
        scores = q @ k.transpose(2, 3) / self.d_head**0.5
        if self.causal:
            scores = scores.masked_fill(self.mask[:n, :n], -torch.inf)
        w = self.dropout(scores.softmax(-1))
        return self.out_proj((w @ v).transpose(1, 2).reshape(b, n, -1))
