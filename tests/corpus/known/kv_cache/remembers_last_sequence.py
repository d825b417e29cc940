# mistake: kept_in_module

import torch
from torch import Tensor, nn

Cache = tuple[Tensor, Tensor]  # keys and values, (batch, num_heads, n_cached, d_head) each


class CachedAttention(nn.Module):
    """Causal multi-head attention over a sequence that arrives in chunks."""

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
        self.past: Cache | None = None

    def forward(self, x: Tensor, cache: Cache | None = None) -> tuple[Tensor, Cache]:
        if cache is None:
            cache = self.past
        batch, n_new, _ = x.shape
        shape = (batch, n_new, self.num_heads, self.d_head)
        queries = self.W_query(x).reshape(shape)
        keys = self.W_key(x).reshape(shape).permute(0, 2, 1, 3)
        values = self.W_value(x).reshape(shape).permute(0, 2, 1, 3)
        n_old = 0
        if cache is not None and cache[0].shape[0] == batch:
            n_old = cache[0].shape[2]
            keys = torch.cat((cache[0], keys), 2)
            values = torch.cat((cache[1], values), 2)
        if n_old + n_new > self.context_length:
            raise ValueError(f"{n_old + n_new} tokens, but at most {self.context_length} fit")
        scores = torch.einsum("bqhd,bhkd->bhqk", queries, keys) / self.d_head**0.5
        future = torch.ones(n_new, n_old + n_new, dtype=torch.bool, device=x.device)
        scores = scores.masked_fill(future.triu(n_old + 1), -torch.inf)
        weights = self.dropout(scores.softmax(-1))
        heads = torch.einsum("bhqk,bhkd->bqhd", weights, values)
        self.past = (keys.detach(), values.detach())
        return self.out_proj(heads.flatten(2)), (keys, values)
