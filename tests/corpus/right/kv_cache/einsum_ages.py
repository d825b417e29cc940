# note: einsum everywhere, and the mask compares the age of tokens (positions counted from the end)
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
        n = x.size(1)
        q, k, v = (
            layer(x).unflatten(-1, (self.num_heads, self.d_head)).permute(0, 2, 1, 3)
            for layer in (self.W_query, self.W_key, self.W_value)
        )
        if cache is not None:
            k, v = (torch.cat(pair, dim=2) for pair in zip(cache, (k, v), strict=True))
        total = k.size(2)
        if total > self.context_length:
            raise ValueError(f"{total} tokens are more than {self.context_length}")
        age = torch.arange(total - 1, -1, -1, device=x.device)  # the last token has age 0
        younger = age[None, :] < age[total - n :, None]
        s = torch.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(self.d_head)
        w = self.dropout(torch.softmax(s.masked_fill(younger, -math.inf), dim=-1))
        y = torch.einsum("bhqk,bhkd->bqhd", w, v).flatten(2)
        return self.out_proj(y), (k, v)
