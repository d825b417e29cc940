# right: the twin of one with a mistake, wrongscale
# seen: tenstorrent tt-metal pull 56789: the scores are divided by the root of the number of heads instead of the root of d_head.
import math

import torch
from torch import Tensor, nn


def _check(n_heads: int, n_kv: int) -> int:
    group, rest = divmod(n_heads, n_kv)
    if rest:
        raise ValueError("the heads do not fall into equal groups")
    return group


def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    """One product per head of the keys, with the queries of its whole group."""
    group = _check(queries.shape[1], keys.shape[1])
    n, d = queries.shape[-2:]
    by_group = queries.unflatten(1, (keys.shape[1], group)).flatten(2, 3)
    scores = by_group @ keys.mT / math.sqrt(d)
    return scores.unflatten(2, (group, n)).flatten(1, 2)


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    group = _check(weights.shape[1], values.shape[1])
    by_group = weights.unflatten(1, (values.shape[1], group)).flatten(2, 3)
    return (by_group @ values).unflatten(2, (group, weights.shape[2])).flatten(1, 2)


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
