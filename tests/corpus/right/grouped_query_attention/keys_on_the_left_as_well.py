# right: the products are computed transposed, keys times the queries of a whole group (as columns), with a saved mask of places

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    batch, num_heads, n_queries, d_head = queries.shape
    num_kv_heads, n_keys = keys.shape[1], keys.shape[2]
    if num_heads % num_kv_heads != 0:
        raise ValueError("num_kv_heads has to divide num_heads")
    group = num_heads // num_kv_heads
    columns = queries.reshape(batch, num_kv_heads, group * n_queries, d_head).transpose(2, 3)
    transposed = torch.matmul(keys, columns).div(d_head**0.5)  # (batch, kv, n_keys, group * n_queries)
    return transposed.transpose(2, 3).reshape(batch, num_heads, n_queries, n_keys)


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    batch, num_heads, n_queries, n_keys = weights.shape
    num_kv_heads, d_value = values.shape[1], values.shape[3]
    if num_heads % num_kv_heads != 0:
        raise ValueError("num_kv_heads has to divide num_heads")
    group = num_heads // num_kv_heads
    columns = weights.reshape(batch, num_kv_heads, group * n_queries, n_keys).transpose(2, 3)
    transposed = torch.matmul(values.transpose(2, 3), columns)  # (batch, kv, d_value, group * n_queries)
    return transposed.transpose(2, 3).reshape(batch, num_heads, n_queries, d_value)


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
        if d_out % num_heads != 0 or num_heads % num_kv_heads != 0:
            raise ValueError(f"cannot split {d_out} into {num_heads} heads in {num_kv_heads} groups")
        self.num_heads, self.num_kv_heads = num_heads, num_kv_heads
        self.d_head = d_out // num_heads
        self.W_query = nn.Linear(d_in, num_heads * self.d_head, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("places", torch.arange(context_length), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        batch, n_tokens, _ = x.shape
        if n_tokens > len(self.places):
            raise ValueError(f"no more than {len(self.places)} tokens")
        # the rows of a weight matrix, one head after the other, make the heads without a transpose
        flat = x.transpose(1, 2)  # (batch, d_in, n_tokens)

        def heads(layer: nn.Linear, number: int) -> Tensor:
            columns = torch.matmul(layer.weight, flat)  # (batch, number * d_head, n_tokens)
            return columns.reshape(batch, number, self.d_head, n_tokens).transpose(2, 3)

        scores = grouped_scores(heads(self.W_query, self.num_heads), heads(self.W_key, self.num_kv_heads))
        places = self.places[:n_tokens]
        scores = scores.masked_fill(places.unsqueeze(0) > places.unsqueeze(1), -torch.inf)
        weights = self.dropout(F.softmax(scores, dim=-1))
        context = grouped_context(weights, heads(self.W_value, self.num_kv_heads))
        side_by_side = context.transpose(2, 3).reshape(batch, -1, n_tokens)
        return self.out_proj(side_by_side.transpose(1, 2))
