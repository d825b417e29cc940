# mistake: merged_without_transpose

import math

import torch
from torch import Tensor, nn


def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    batch, num_heads, n_queries, d_head = queries.shape
    _, num_kv_heads, n_keys, _ = keys.shape
    if num_heads % num_kv_heads != 0:
        raise ValueError("heads cannot be grouped")
    stacked = queries.reshape(batch, num_kv_heads, -1, d_head)
    products = torch.einsum("bjrd,bjkd->bjrk", stacked, keys)
    return products.reshape(batch, num_heads, n_queries, n_keys) / math.sqrt(d_head)


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    batch, num_heads, n_queries, n_keys = weights.shape
    num_kv_heads, d_value = values.shape[1], values.shape[3]
    if num_heads % num_kv_heads != 0:
        raise ValueError("heads cannot be grouped")
    stacked = weights.reshape(batch, num_kv_heads, -1, n_keys)
    sums = torch.einsum("bjrk,bjkv->bjrv", stacked, values)
    return sums.reshape(batch, num_heads, n_queries, d_value)


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
        if d_out % num_heads != 0:
            raise ValueError(f"{num_heads} heads do not divide d_out = {d_out}")
        if num_heads % num_kv_heads != 0:
            raise ValueError(f"{num_kv_heads} does not divide {num_heads} heads")
        self.context_length = context_length
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads
        self.d_head = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.out_proj = nn.Linear(d_out, d_out, bias=True)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        batch, n_tokens, _ = x.shape
        if n_tokens > self.context_length:
            raise ValueError("x is longer than context_length")

        def to_heads(y: Tensor, heads: int) -> Tensor:
            return y.reshape(batch, n_tokens, heads, self.d_head).permute(0, 2, 1, 3)

        scores = grouped_scores(
            to_heads(self.W_query(x), self.num_heads), to_heads(self.W_key(x), self.num_kv_heads)
        )
        place = torch.arange(n_tokens, device=x.device)
        scores = scores.masked_fill(place > place[:, None], -math.inf)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        context = grouped_context(weights, to_heads(self.W_value(x), self.num_kv_heads))
        return self.out_proj(context.reshape(batch, n_tokens, -1))
