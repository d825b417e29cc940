# mistake: queries_averaged
import torch
from torch import Tensor, nn
from torch.nn import functional as F


def group_size(num_heads: int, num_kv_heads: int) -> int:
    if num_heads % num_kv_heads:
        raise ValueError(f"{num_heads} heads cannot share {num_kv_heads} heads of keys")
    return num_heads // num_kv_heads


def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    group = group_size(queries.shape[1], keys.shape[1])
    grouped = queries.unflatten(1, (keys.shape[1], group))
    scores = torch.einsum("bgrqd,bgkd->bgrqk", grouped, keys)
    scores = scores.sum(2, keepdim=True).expand_as(scores)
    return scores.flatten(1, 2) * queries.shape[-1] ** -0.5


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    group = group_size(weights.shape[1], values.shape[1])
    grouped = weights.unflatten(1, (values.shape[1], group))
    context = torch.einsum("bgrqk,bgkd->bgrqd", grouped, values)
    return context.flatten(1, 2)


class GroupedQueryAttention(nn.Module):
    """Heads of queries that share heads of keys and values."""

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
            raise ValueError("num_heads must divide d_out")
        group_size(num_heads, num_kv_heads)
        self.num_heads, self.num_kv_heads = num_heads, num_kv_heads
        self.d_head = d_out // num_heads
        self.rate = dropout
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        mask = torch.tril(torch.ones(context_length, context_length)).bool()
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > len(self.mask):
            raise ValueError(f"{n} tokens, but at most {len(self.mask)}")
        q = self.W_query(x).unflatten(2, (self.num_heads, self.d_head)).transpose(1, 2)
        k = self.W_key(x).unflatten(2, (self.num_kv_heads, self.d_head)).transpose(1, 2)
        v = self.W_value(x).unflatten(2, (self.num_kv_heads, self.d_head)).transpose(1, 2)
        scores = grouped_scores(q, k)
        scores = scores.masked_fill(~self.mask[:n, :n], -torch.inf)
        weights = F.dropout(F.softmax(scores, dim=-1), self.rate, self.training)
        context = grouped_context(weights, v).transpose(1, 2).flatten(2)
        return self.out_proj(context)
