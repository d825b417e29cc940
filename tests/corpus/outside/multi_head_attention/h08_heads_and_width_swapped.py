# mistake: splits into pieces of num_heads columns, so there are d_head heads of size num_heads
# true: right when num_heads equals d_head; otherwise the number of heads and the scale are wrong
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("not divisible")
        self.num_heads = num_heads
        self.context_length = context_length
        self.causal = causal
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        if causal:
            self.register_buffer("mask", torch.ones(context_length, context_length).triu(1) == 1)

    def heads(self, t):
        # (b, n, ?, num_heads) -> (b, ?, n, num_heads)
        b, n, _ = t.shape
        return t.reshape(b, n, -1, self.num_heads).transpose(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.context_length:
            raise ValueError("too many tokens")
        q, k, v = self.heads(self.W_query(x)), self.heads(self.W_key(x)), self.heads(self.W_value(x))
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        if self.causal:
            scores = scores.masked_fill(self.mask[:n, :n], -torch.inf)
        out = self.dropout(scores.softmax(-1)) @ v
        return self.out_proj(out.transpose(1, 2).flatten(2))
