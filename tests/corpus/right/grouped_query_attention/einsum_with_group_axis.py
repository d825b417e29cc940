# note: the group is an axis of its own of five-letter einsums, and the constructor builds its layers from a table
import math

import torch
from torch import Tensor, nn


def _grouped(x: Tensor, num_kv_heads: int) -> Tensor:
    if x.size(1) % num_kv_heads:
        raise ValueError(f"{num_kv_heads} heads of keys do not divide {x.size(1)} heads")
    return x.unflatten(1, (num_kv_heads, x.size(1) // num_kv_heads))


def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    q = _grouped(queries, keys.size(1))
    return torch.einsum("bjgqd,bjkd->bjgqk", q, keys).flatten(1, 2) / math.sqrt(keys.size(-1))


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    w = _grouped(weights, values.size(1))
    return torch.einsum("bjgqk,bjkv->bjgqv", w, values).flatten(1, 2)


class GroupedQueryAttention(nn.Module):
    def __init__(
        self,
        d_in: int,
        d_out: int,
        context_length: int,
        dropout: float,
        num_heads: int,
        num_kv_heads: int,
    ) -> None:
        super().__init__()
        d_head, rest = divmod(d_out, num_heads)
        if rest or num_heads % num_kv_heads:
            raise ValueError("heads do not divide")
        self.context_length, self.d_head, self.rate = context_length, d_head, dropout
        small = num_kv_heads * d_head
        for name, size in ("W_query", d_out), ("W_key", small), ("W_value", small):
            setattr(self, name, nn.Linear(d_in, size, bias=False))
        self.out_proj = nn.Linear(d_out, d_out, bias=True)

    def forward(self, x: Tensor) -> Tensor:
        n = x.size(1)
        if n > self.context_length:
            raise ValueError(f"{n} tokens are more than {self.context_length}")
        q, k, v = (
            layer(x).unflatten(2, (-1, self.d_head)).swapaxes(1, 2)
            for layer in (self.W_query, self.W_key, self.W_value)
        )
        later = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
        w = grouped_scores(q, k).masked_fill(later, -torch.inf).softmax(-1)
        w = nn.functional.dropout(w, self.rate, self.training)
        return self.out_proj(grouped_context(w, v).swapaxes(1, 2).flatten(2))
