# broken: "Gradients reach x and all parameters, with a cache and without": with a cache, the new keys are detached, so with a detached cache W_key gets no gradient
import math

import torch
from torch import Tensor, nn

Cache = tuple[Tensor, Tensor]  # keys and values, (batch, num_heads, n_cached, d_head) each


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

    def split(self, t: Tensor) -> Tensor:
        b, n, _ = t.shape
        return t.reshape(b, n, self.num_heads, self.d_head).transpose(1, 2)

    def forward(self, x: Tensor, cache: Cache | None = None) -> tuple[Tensor, Cache]:
        b, n, _ = x.shape
        past = 0 if cache is None else cache[0].shape[2]
        if past + n > self.context_length:
            raise ValueError(f"{past + n} tokens, but at most {self.context_length} are possible")
        queries = self.split(self.W_query(x))
        keys = self.split(self.W_key(x))
        values = self.split(self.W_value(x))
        if cache is not None:
            keys = torch.cat([cache[0], keys.detach()], dim=2)
            values = torch.cat([cache[1], values], dim=2)
        scores = queries @ keys.transpose(-2, -1) / math.sqrt(self.d_head)
        later = torch.ones(n, past + n, dtype=torch.bool, device=x.device).triu(past + 1)
        scores = scores.masked_fill(later, float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        weights = self.dropout(weights)
        context = (weights @ values).transpose(1, 2).reshape(b, n, self.num_heads * self.d_head)
        return self.out_proj(context), (keys, values)
