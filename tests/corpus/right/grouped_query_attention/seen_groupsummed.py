# right: the twin of one with a mistake, groupsummed
# seen: fkodom/grouped-query-attention-pytorch issue 5: the queries of a group are summed up to one per shared head before the product, so that all heads of a group get the same scores.
import math

import torch
from torch import Tensor, nn


def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    b, h, n, d = queries.shape
    kv = keys.shape[1]
    if h % kv:
        raise ValueError("num_kv_heads does not divide num_heads")
    q = queries.reshape(b, kv, h // kv, n, d)
    similarity = torch.einsum("bjgnd,bjsd->bjgns", q, keys)
    return similarity.reshape(b, h, n, -1) / d**0.5


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    b, h, n, s = weights.shape
    kv = values.shape[1]
    if h % kv:
        raise ValueError("num_kv_heads does not divide num_heads")
    stacked = weights.reshape(b, kv, h // kv * n, s)  # all queries of a group in one product
    return (stacked @ values).reshape(b, h, n, values.shape[-1])


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
        batch, n_tokens, _ = x.shape
        if n_tokens > self.context_length:
            raise ValueError("the sentence is too long")

        def heads(y: Tensor, how_many: int) -> Tensor:
            return y.reshape(batch, n_tokens, how_many, self.d_head).permute(0, 2, 1, 3)

        scores = grouped_scores(
            heads(self.W_query(x), self.num_heads), heads(self.W_key(x), self.num_kv_heads)
        )
        place = torch.arange(n_tokens, device=x.device)
        scores = scores.masked_fill(place[None, :] > place[:, None], -torch.inf)
        weights = self.dropout(scores.softmax(-1))
        context = grouped_context(weights, heads(self.W_value(x), self.num_kv_heads))
        return self.out_proj(context.permute(0, 2, 1, 3).reshape(batch, n_tokens, -1))
