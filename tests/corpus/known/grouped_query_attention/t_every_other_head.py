# mistake: tiled_groups
import math

import torch
from torch import Tensor, nn


def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    """Return the scores of every query head with the keys of its group."""
    batch, num_heads, n_queries, d_head = queries.shape
    num_kv_heads, n_keys = keys.shape[1], keys.shape[2]
    if num_heads % num_kv_heads != 0:
        raise ValueError("num_kv_heads does not divide num_heads")
    group = num_heads // num_kv_heads
    folded = queries.reshape(batch, group, num_kv_heads, n_queries, d_head)
    folded = folded.transpose(1, 2).reshape(batch, num_kv_heads, -1, d_head)
    scores = folded @ keys.transpose(2, 3) / math.sqrt(d_head)
    scores = scores.reshape(batch, num_kv_heads, group, n_queries, n_keys)
    return scores.transpose(1, 2).reshape(batch, num_heads, n_queries, n_keys)


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    """Return the values of every head's group, added up with the weights of the head."""
    batch, num_heads, n_queries, n_keys = weights.shape
    num_kv_heads, d_value = values.shape[1], values.shape[3]
    if num_heads % num_kv_heads != 0:
        raise ValueError("num_kv_heads does not divide num_heads")
    context = weights.reshape(batch, num_kv_heads, -1, n_keys) @ values
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
        if d_out % num_heads != 0 or num_heads % num_kv_heads != 0:
            raise ValueError("the numbers of heads do not fit")
        self.context_length = context_length
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads
        self.d_head = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Map x (batch, n_tokens, d_in) to (batch, n_tokens, d_out)."""
        batch, n_tokens, _ = x.shape
        if n_tokens > self.context_length:
            raise ValueError(f"{n_tokens} tokens are too many")
        queries = self.W_query(x).reshape(batch, n_tokens, self.num_heads, self.d_head).transpose(1, 2)
        keys = self.W_key(x).reshape(batch, n_tokens, self.num_kv_heads, self.d_head).transpose(1, 2)
        values = self.W_value(x).reshape(batch, n_tokens, self.num_kv_heads, self.d_head).transpose(1, 2)
        scores = grouped_scores(queries, keys)
        hidden = torch.ones(n_tokens, n_tokens, dtype=torch.bool, device=x.device).triu(1)
        weights = torch.softmax(scores.masked_fill(hidden, float("-inf")), dim=-1)
        context = grouped_context(self.dropout(weights), values)
        return self.out_proj(context.transpose(1, 2).reshape(batch, n_tokens, -1))
