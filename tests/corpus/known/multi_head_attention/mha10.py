# mistake: interleaved_heads
# head i takes every num_heads-th column
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, context_length: int, dropout: float, num_heads: int, qkv_bias: bool = False, causal: bool = True) -> None:
        super().__init__()
        if d_out % num_heads:
            raise ValueError("num_heads must divide d_out")
        self.d_head = d_out // num_heads
        self.causal = causal
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        if causal:
            self.register_buffer("tril", torch.tril(torch.ones(context_length, context_length, dtype=torch.bool)))

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError("too many tokens")

        def by_head(t):
            return t.view(b, n, self.d_head, -1)

        q, k, v = by_head(self.W_query(x)), by_head(self.W_key(x)), by_head(self.W_value(x))
        att = torch.einsum("bqdh,bkdh->bhqk", q, k) / self.d_head**0.5
        if self.causal:
            att = att.masked_fill(self.tril[:n, :n].logical_not(), float("-inf"))
        att = self.dropout(att.softmax(dim=3))
        ctx = torch.einsum("bhqk,bkdh->bqdh", att, v)
        return self.out_proj(ctx.reshape(b, n, -1))
