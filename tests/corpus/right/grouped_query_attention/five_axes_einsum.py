# right: everything runs on five axes (batch, kv head, member, query, key) with einsum, also in the class; softmax by hand

import torch
from torch import Tensor, nn


def _members(num_heads: int, num_kv_heads: int) -> tuple[int, int]:
    members, rest = divmod(num_heads, num_kv_heads)
    if rest:
        raise ValueError(f"{num_heads} heads cannot share {num_kv_heads} heads of keys and values")
    return num_kv_heads, members


def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    by_group = queries.unflatten(1, _members(queries.shape[1], keys.shape[1]))
    scores = torch.einsum("bjmqd,bjkd->bjmqk", by_group, keys)
    return scores.flatten(1, 2) / queries.shape[-1] ** 0.5


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    by_group = weights.unflatten(1, _members(weights.shape[1], values.shape[1]))
    return torch.einsum("bjmqk,bjkv->bjmqv", by_group, values).flatten(1, 2)


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
        if d_out % num_heads:
            raise ValueError(f"{num_heads} heads do not divide {d_out} columns")
        _members(num_heads, num_kv_heads)
        d_head = d_out // num_heads
        self.context_length = context_length
        self.d_head = d_head
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_heads * d_head, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_heads * d_head, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.rate = dropout

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] > self.context_length:
            raise ValueError(f"{x.shape[1]} tokens are more than {self.context_length}")
        queries, keys, values = (
            layer(x).unflatten(-1, (-1, self.d_head)).movedim(2, 1)
            for layer in (self.W_query, self.W_key, self.W_value)
        )
        scores = grouped_scores(queries, keys)
        place = torch.arange(x.shape[1], device=x.device)
        hidden = place[None, :] > place[:, None]
        if scores.dtype != torch.float64:
            scores = scores.float()
        scores = torch.where(hidden, -torch.inf, scores)
        powers = torch.exp(scores - scores.detach().amax(-1, keepdim=True))
        weights = (powers / powers.sum(-1, keepdim=True)).to(values.dtype)
        weights = nn.functional.dropout(weights, self.rate, self.training)
        return self.out_proj(grouped_context(weights, values).movedim(1, 2).flatten(2))
