# mistake: copied_to_all_heads

import torch
from torch import Tensor, nn


def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    num_heads, num_kv_heads = queries.shape[1], keys.shape[1]
    if num_heads % num_kv_heads:
        raise ValueError("num_kv_heads does not divide num_heads")
    queries = queries.unflatten(1, (num_kv_heads, num_heads // num_kv_heads))
    products = queries @ keys.unsqueeze(2).mT
    return products.flatten(1, 2) / queries.shape[-1] ** 0.5


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    num_heads, num_kv_heads = weights.shape[1], values.shape[1]
    if num_heads % num_kv_heads:
        raise ValueError("num_kv_heads does not divide num_heads")
    weights = weights.unflatten(1, (num_kv_heads, num_heads // num_kv_heads))
    return (weights @ values.unsqueeze(2)).flatten(1, 2)


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
        if d_out % num_heads or num_heads % num_kv_heads:
            raise ValueError("sizes do not divide each other")
        d_head = d_out // num_heads
        self.sizes = num_heads, num_kv_heads, d_head
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_heads * d_head, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_heads * d_head, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        future = torch.ones(context_length, context_length, dtype=torch.bool).triu(1)
        self.register_buffer("future", future, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.context_length:
            raise ValueError(f"{n} tokens, at most {self.context_length}")
        num_heads, num_kv_heads, d_head = self.sizes
        queries = self.W_query(x).unflatten(-1, (num_heads, d_head)).transpose(1, 2)
        keys = self.W_key(x).unflatten(-1, (num_kv_heads, d_head)).transpose(1, 2)
        values = self.W_value(x).unflatten(-1, (num_kv_heads, d_head)).transpose(1, 2)
        scores = grouped_scores(queries, keys)
        scores = scores.masked_fill(self.future[:n, :n], float("-inf"))
        weights = self.dropout(scores.softmax(-1))
        context = grouped_context(weights, values)
        return self.out_proj(context.transpose(1, 2).flatten(2))
