# mistake: merged_without_transpose
# the heads' outputs (batch, heads, tokens, d_head) are reshaped to (batch, tokens, d_out) without moving the head axis back, which mixes tokens and heads
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        qkv_bias: bool = False,
        causal: bool = True,
    ) -> None:
        super().__init__()
        self.h, rest = divmod(d_out, num_heads)
        if rest:
            raise ValueError(f"{num_heads} heads do not divide {d_out}")
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.p, self.causal = dropout, causal
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(1).bool())

    def _heads(self, t: Tensor) -> Tensor:
        return t.unflatten(-1, (-1, self.h)).transpose(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        n = x.size(1)
        if n > self.mask.size(0):
            raise ValueError("context_length exceeded")
        q, k, v = self._heads(self.W_query(x)), self._heads(self.W_key(x)), self._heads(self.W_value(x))
        att = (q @ k.mT) * self.h**-0.5
        if self.causal:
            att = att.masked_fill(self.mask[:n, :n], -torch.inf)
        att = F.dropout(F.softmax(att, -1), self.p, self.training)
        y = att @ v
        return self.out_proj(y.reshape(x.size(0), n, -1))
