# mistake: viewed_without_transpose
# heads are cut out by a reshape straight to (batch, heads, tokens, d_head)
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, num_heads: int, qkv_bias: bool = False, causal: bool = True) -> None:
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.context_length = context_length
        self.causal = causal
        if causal:
            self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1).bool())

    def heads(self, t: Tensor) -> Tensor:
        return t.reshape(t.shape[0], self.num_heads, -1, self.head_dim)

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError("too many tokens")
        q, k, v = map(self.heads, (self.W_query(x), self.W_key(x), self.W_value(x)))
        scores = q @ k.transpose(2, 3) / self.head_dim**0.5
        if self.causal:
            scores = scores.masked_fill(self.mask[:n, :n], -torch.inf)
        ctx = self.dropout(scores.softmax(-1)) @ v
        return self.out_proj(ctx.transpose(1, 2).reshape(b, n, -1))
