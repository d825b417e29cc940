# mistake: heads_attend_to_heads
# true: no token ever sees another one; one head gives out_proj of the token's own value
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("num_heads does not divide d_out")
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.causal = causal
        size = max(context_length, num_heads)
        mask = torch.triu(torch.ones(size, size), diagonal=1)
        self.register_buffer("mask", mask.bool() if causal else None)

    def forward(self, x: Tensor) -> Tensor:
        b, num_tokens, _ = x.shape
        if num_tokens > self.context_length:
            raise ValueError("too long")
        shape = (b, num_tokens, self.num_heads, self.head_dim)
        queries = self.W_query(x).view(shape)
        keys = self.W_key(x).view(shape)
        values = self.W_value(x).view(shape)
        scores = queries @ keys.transpose(-2, -1) / self.head_dim ** 0.5
        if self.causal:
            r = scores.size(-1)
            scores = scores.masked_fill(self.mask[:r, :r], -torch.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        context = (weights @ values).reshape(b, num_tokens, -1)
        return self.out_proj(context)
