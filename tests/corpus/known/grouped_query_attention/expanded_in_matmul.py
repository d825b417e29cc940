# mistake: copied_to_all_heads
# the keys and values get an axis of size 1 that @ expands to the group, which copies them to all heads
import math

import torch
from torch import Tensor, nn


def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    b, h, n, d = queries.shape
    kv = keys.shape[1]
    if h % kv:
        raise ValueError(f"{kv} does not divide {h}")
    q = queries.unflatten(1, (kv, h // kv))
    # broadcasting needs no memory
    scores = q @ keys.unsqueeze(2).mT
    return scores.flatten(1, 2) / math.sqrt(d)


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    h, kv = weights.shape[1], values.shape[1]
    if h % kv:
        raise ValueError(f"{kv} does not divide {h}")
    w = weights.unflatten(1, (kv, h // kv))
    return (w @ values.unsqueeze(2)).flatten(1, 2)


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
            raise ValueError("num_heads does not divide d_out")
        if num_heads % num_kv_heads != 0:
            raise ValueError("num_kv_heads does not divide num_heads")
        self.d_head = d_out // num_heads
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.context_length:
            raise ValueError(f"{n} tokens")
        heads = lambda t: t.unflatten(-1, (-1, self.d_head)).transpose(1, 2)
        scores = grouped_scores(heads(self.W_query(x)), heads(self.W_key(x)))
        causal = torch.tril(torch.ones(n, n, dtype=torch.bool, device=x.device))
        weights = torch.softmax(scores.masked_fill(~causal, float("-inf")), dim=-1)
        out = grouped_context(self.dropout(weights), heads(self.W_value(x)))
        return self.out_proj(out.transpose(1, 2).flatten(2))
