# mistake: puts the heads side by side in reverse order before out_proj
# true: each head is right but in the wrong columns; one head is right
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False, causal=True):
        super().__init__()
        assert d_out % num_heads == 0, "d_out % num_heads"
        self.h = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.drop = nn.Dropout(dropout)
        self.max_len = context_length
        self.causal = causal
        if causal:
            self.register_buffer("tri", torch.tril(torch.ones(context_length, context_length, dtype=torch.bool)))

    def split(self, t):
        return t.unflatten(-1, (self.h, t.shape[-1] // self.h)).transpose(1, 2)      # (b, h, n, d)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.max_len:
            raise ValueError("n_tokens")
        q, k, v = map(self.split, (self.W_query(x), self.W_key(x), self.W_value(x)))
        s = torch.einsum("bhid,bhjd->bhij", q, k) * q.shape[-1] ** -0.5
        if self.causal:
            s = s.masked_fill(~self.tri[:n, :n], float("-inf"))
        ctx = torch.einsum("bhij,bhjd->bihd", self.drop(s.softmax(-1)), v)
        return self.out_proj(ctx.flip(2).flatten(2))
