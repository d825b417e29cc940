# mistake: features_of_heads_alternate
import math

import torch
from torch import Tensor, nn


def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    batch, num_heads, n_queries, d_head = queries.shape
    num_kv = keys.shape[1]
    group, rest = divmod(num_heads, num_kv)
    if rest != 0:
        raise ValueError("num_kv_heads has to divide num_heads")
    stacked = queries.reshape(batch, num_kv, group * n_queries, d_head)
    scores = stacked @ keys.transpose(-2, -1)
    return scores.view(batch, num_heads, n_queries, keys.shape[2]) / math.sqrt(d_head)


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    batch, num_heads, n_queries, n_keys = weights.shape
    num_kv = values.shape[1]
    group, rest = divmod(num_heads, num_kv)
    if rest != 0:
        raise ValueError("num_kv_heads has to divide num_heads")
    stacked = weights.reshape(batch, num_kv, group * n_queries, n_keys)
    return (stacked @ values).view(batch, num_heads, n_queries, values.shape[3])


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
            raise ValueError("num_heads has to divide d_out")
        if num_heads % num_kv_heads != 0:
            raise ValueError("num_kv_heads has to divide num_heads")
        d_head = d_out // num_heads
        self.context_length, self.d_head = context_length, d_head
        self.W_query = nn.Linear(d_in, num_heads * d_head, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_heads * d_head, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_heads * d_head, bias=False)
        self.out_proj = nn.Linear(d_out, d_out, bias=True)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError("sequence too long")
        q = self.W_query(x).reshape(b, n, -1, self.d_head).transpose(1, 2)
        k = self.W_key(x).reshape(b, n, -1, self.d_head).transpose(1, 2)
        v = self.W_value(x).reshape(b, n, -1, self.d_head).transpose(1, 2)
        place = torch.arange(n, device=x.device)
        hidden = place[None, :] > place[:, None]
        scores = torch.where(hidden, -torch.inf, grouped_scores(q, k))
        context = grouped_context(self.dropout(torch.softmax(scores, -1)), v)
        joined = context.permute(0, 2, 3, 1).reshape(b, n, -1)
        return self.out_proj(joined)
