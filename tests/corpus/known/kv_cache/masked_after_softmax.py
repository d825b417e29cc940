# mistake: renormalised_after_softmax
# the future is removed after the softmax, and the rest is divided by its sum, so a huge score of a later token still changes earlier outputs
import math

import torch
from torch import Tensor, nn

Cache = tuple[Tensor, Tensor]


class CachedAttention(nn.Module):
    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        qkv_bias: bool = False,
    ) -> None:
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"{num_heads} heads do not divide d_out = {d_out}")
        self.context_length = context_length
        self.num_heads = num_heads
        self.d_head = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, cache: Cache | None = None) -> tuple[Tensor, Cache]:
        b, n, _ = x.shape
        past = 0 if cache is None else cache[0].shape[2]
        if n + past > self.context_length:
            raise ValueError("sequence too long")
        q, k, v = [
            w(x).reshape(b, n, self.num_heads, self.d_head).transpose(1, 2)
            for w in (self.W_query, self.W_key, self.W_value)
        ]
        if cache is not None:
            k = torch.cat([cache[0], k], dim=2)
            v = torch.cat([cache[1], v], dim=2)
        weights = torch.softmax(q @ k.transpose(2, 3) / math.sqrt(self.d_head), dim=-1)
        simple_mask = torch.tril(torch.ones(n, past + n, device=x.device, dtype=x.dtype), diagonal=past)
        weights = weights * simple_mask
        weights = weights / weights.sum(dim=-1, keepdim=True)
        context = (self.dropout(weights) @ v).transpose(1, 2).reshape(b, n, -1)
        return self.out_proj(context), (k, v)
