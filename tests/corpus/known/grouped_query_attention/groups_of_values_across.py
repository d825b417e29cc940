# mistake: tiled_groups
import math

import torch
from torch import Tensor, nn


def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    """Return the scores of every query head with the keys of its group."""
    batch, num_heads, n_queries, d_head = queries.shape
    num_kv_heads, n_keys = keys.shape[1:3]
    if num_heads % num_kv_heads != 0:
        raise ValueError(f"{num_kv_heads} heads of keys do not divide {num_heads} heads")
    group = num_heads // num_kv_heads
    rows = queries.reshape(batch, num_kv_heads, group * n_queries, d_head)
    scores = rows @ keys.transpose(2, 3) / math.sqrt(d_head)
    return scores.reshape(batch, num_heads, n_queries, n_keys)


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    """Return the values of every head's group, added up with the weights of the head."""
    batch, num_heads, n_queries, n_keys = weights.shape
    num_kv_heads, d_value = values.shape[1], values.shape[3]
    if num_heads % num_kv_heads != 0:
        raise ValueError(f"{num_kv_heads} heads of values do not divide {num_heads} heads")
    group = num_heads // num_kv_heads
    rows = weights.reshape(batch, group, num_kv_heads, n_queries, n_keys).transpose(1, 2)
    context = rows.flatten(2, 3) @ values
    context = context.unflatten(2, (group, n_queries)).transpose(1, 2)
    return context.reshape(batch, num_heads, n_queries, d_value)


class GroupedQueryAttention(nn.Module):
    """Causal attention with num_heads heads of queries and num_kv_heads heads of keys and values."""

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
        if d_out % num_heads != 0:
            raise ValueError(f"{num_heads} heads do not divide d_out = {d_out}")
        if num_heads % num_kv_heads != 0:
            raise ValueError(f"{num_kv_heads} heads of keys do not divide {num_heads} heads")
        self.context_length = context_length
        self.d_head = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def split(self, projected: Tensor) -> Tensor:
        return projected.unflatten(-1, (-1, self.d_head)).transpose(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        """Map x (batch, n_tokens, d_in) to (batch, n_tokens, d_out)."""
        n_tokens = x.shape[1]
        if n_tokens > self.context_length:
            raise ValueError(f"{n_tokens} tokens, but at most {self.context_length} fit")
        scores = grouped_scores(self.split(self.W_query(x)), self.split(self.W_key(x)))
        later = torch.ones(n_tokens, n_tokens, dtype=torch.bool, device=x.device).triu(diagonal=1)
        weights = torch.softmax(scores.masked_fill(later, float("-inf")), dim=-1)
        context = grouped_context(self.dropout(weights), self.split(self.W_value(x)))
        return self.out_proj(context.transpose(1, 2).flatten(2))
