import torch
from torch import Tensor, nn


class Heads(nn.Module):
    """Splits (batch, tokens, d_out) into (heads, batch, tokens, d_head) and joins it again."""

    def __init__(self, n):
        super().__init__()
        self.n = n

    def split(self, t):
        return t.unflatten(-1, (self.n, t.shape[-1] // self.n)).movedim(-2, 0)

    def join(self, t):
        h, b, n, d = t.shape
        return t.permute(1, 2, 0, 3).reshape(b, n, h * d)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        if d_out % num_heads:
            raise ValueError("check num_heads")
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.heads = Heads(num_heads)
        self.drop = nn.Dropout(dropout)
        self.context_length = context_length
        mask = torch.zeros(context_length, context_length)
        if causal:
            mask = mask.masked_fill(torch.ones_like(mask).triu(1) == 1, -torch.inf)
        self.register_buffer("mask", mask)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.context_length:
            raise ValueError(n)
        q, k, v = map(self.heads.split, (self.W_query(x), self.W_key(x), self.W_value(x)))
        s = q @ k.mT / q.shape[-1] ** 0.5 + self.mask[:n, :n]
        w = torch.log_softmax(s, dim=-1).exp()
        return self.out_proj(self.heads.join(self.drop(w) @ v))
