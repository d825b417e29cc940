# mistake: tiled_groups
# seen: apple/axlearn pull 842 and onnx pull 7274: the shared heads are tiled instead of repeated one by one: head i gets the keys and values i % num_kv_heads instead of i // group.
import math

import torch
from torch import Tensor, nn


def _group(n_heads: int, n_kv: int) -> int:
    if n_heads % n_kv != 0:
        raise ValueError(f"{n_kv} heads of keys do not divide {n_heads} heads")
    return n_heads // n_kv


def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    n_kv = keys.size(1)
    group = _group(queries.size(1), n_kv)
    q = queries.unflatten(1, (group, n_kv))
    scores = torch.einsum("bgjqd,bjkd->bgjqk", q, keys)
    return scores.flatten(1, 2) / math.sqrt(queries.size(-1))


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    n_kv = values.size(1)
    group = _group(weights.size(1), n_kv)
    w = weights.unflatten(1, (group, n_kv))
    return torch.einsum("bgjqk,bjkv->bgjqv", w, values).flatten(1, 2)


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
            raise ValueError(f"d_out = {d_out} does not split into {num_heads} heads")
        if num_heads % num_kv_heads != 0:
            raise ValueError(f"{num_kv_heads} does not divide {num_heads} heads")
        self.d_head = d_out // num_heads
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        n = x.size(1)
        if n > self.context_length:
            raise ValueError(f"{n} tokens are more than {self.context_length}")
        q = self.W_query(x).unflatten(-1, (self.num_heads, self.d_head)).transpose(1, 2)
        k = self.W_key(x).unflatten(-1, (self.num_kv_heads, self.d_head)).transpose(1, 2)
        v = self.W_value(x).unflatten(-1, (self.num_kv_heads, self.d_head)).transpose(1, 2)
        later = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
        scores = grouped_scores(q, k).masked_fill(later, float("-inf"))
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return self.out_proj(grouped_context(weights, v).transpose(1, 2).flatten(2))
