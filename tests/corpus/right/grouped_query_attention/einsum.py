"""Grouped-query attention: einsum with an axis for the groups and one for their heads."""

import torch
from torch import nn


def by_group(tensor, groups):
    """Split the axis of the heads into groups and heads of a group."""
    if tensor.shape[1] % groups:
        raise ValueError("groups of unequal size")
    return tensor.unflatten(1, (groups, -1))


def grouped_scores(queries, keys):
    grouped = by_group(queries * queries.shape[-1] ** -0.5, keys.shape[1])
    return torch.einsum("bghqd,bgkd->bghqk", grouped, keys).flatten(1, 2)


def grouped_context(weights, values):
    grouped = by_group(weights, values.shape[1])
    return torch.einsum("bghqk,bgkd->bghqd", grouped, values).flatten(1, 2)


class GroupedQueryAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, num_kv_heads):
        super().__init__()
        if d_out % num_heads or num_heads % num_kv_heads:
            raise ValueError("heads of unequal size")
        self.context_length, self.num_heads, self.num_kv_heads = (
            context_length,
            num_heads,
            num_kv_heads,
        )
        d_kv = d_out // num_heads * num_kv_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_kv, bias=False)
        self.W_value = nn.Linear(d_in, d_kv, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        if x.shape[1] > self.context_length:
            raise ValueError("too many tokens")
        q, k, v = (
            torch.einsum("bnhd->bhnd", layer(x).unflatten(-1, (heads, -1)))
            for layer, heads in (
                (self.W_query, self.num_heads),
                (self.W_key, self.num_kv_heads),
                (self.W_value, self.num_kv_heads),
            )
        )
        place = torch.arange(x.shape[1], device=x.device)
        scores = grouped_scores(q, k).masked_fill(place > place[:, None], float("-inf"))
        context = grouped_context(self.drop(scores.softmax(-1)), v)
        return self.out_proj(torch.einsum("bhnd->bnhd", context).flatten(-2))
