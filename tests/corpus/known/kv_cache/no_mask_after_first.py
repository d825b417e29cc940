# mistake: unmasked_in_chunk
# with a cache there is no mask at all, as if only one new token could come, so the tokens of a later chunk see each other's future
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

    def _split(self, t):
        return t.unflatten(2, (self.num_heads, self.d_head)).transpose(1, 2)

    def forward(self, x: Tensor, cache: Cache | None = None) -> tuple[Tensor, Cache]:
        n = x.shape[1]
        cached = 0 if cache is None else cache[0].shape[2]
        if cached + n > self.context_length:
            raise ValueError(f"{cached + n} > {self.context_length}")
        q, k, v = self._split(self.W_query(x)), self._split(self.W_key(x)), self._split(self.W_value(x))
        if cache is not None:
            k = torch.cat((cache[0], k), 2)
            v = torch.cat((cache[1], v), 2)
        att = q @ k.mT / math.sqrt(self.d_head)
        if cache is None:
            future = torch.ones(n, n, device=x.device, dtype=torch.bool).triu(1)
            att = att.masked_fill(future, -math.inf)
        att = self.dropout(att.softmax(-1))
        y = (att @ v).transpose(1, 2).flatten(2)
        return self.out_proj(y), (k, v)
