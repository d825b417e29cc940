# right: bmm over sentences and shared heads, the queries of a group as one long table, own softmax, keys transposed first
import math

import torch
from torch import Tensor, nn


def per_group(table: Tensor, shared: Tensor) -> Tensor:
    """Multiply the rows of every head's table by the matrix that the group shares."""
    batch, num_heads, n_rows, n_inner = table.shape
    num_kv_heads = shared.size(1)
    group, rest = divmod(num_heads, num_kv_heads)
    if rest:
        raise IndexError("no equal groups")
    left = table.reshape(batch * num_kv_heads, group * n_rows, n_inner)
    right = shared.reshape(batch * num_kv_heads, *shared.shape[2:])
    return torch.bmm(left, right).view(batch, num_heads, n_rows, -1)


def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    return per_group(queries, keys.mT).div(math.sqrt(keys.size(3)))


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    return per_group(weights, values)


class GroupedQueryAttention(nn.Module):
    def __init__(
        self, d_in: int, d_out: int, context_length: int, dropout: float, num_heads: int, num_kv_heads: int
    ) -> None:
        super().__init__()
        self.n_heads, self.n_shared = num_heads, num_kv_heads
        if d_out % num_heads:
            raise ValueError("d_out is no multiple of num_heads")
        if num_heads % num_kv_heads:
            raise ValueError("num_heads is no multiple of num_kv_heads")
        self.limit = context_length
        small = d_out // num_heads * num_kv_heads
        for name, size, bias in (("W_query", d_out, False), ("W_key", small, False), ("W_value", small, False)):
            self.add_module(name, nn.Linear(d_in, size, bias))
        self.add_module("out_proj", nn.Linear(d_out, d_out, True))
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        batch, n_tokens, _ = x.shape
        if n_tokens > self.limit:
            raise ValueError("too many tokens")
        q = self.W_query(x).reshape(batch, n_tokens, self.n_heads, -1).permute(0, 2, 1, 3)
        k = self.W_key(x).reshape(batch, n_tokens, self.n_shared, -1).permute(0, 2, 1, 3)
        v = self.W_value(x).reshape(batch, n_tokens, self.n_shared, -1).permute(0, 2, 1, 3)
        place = torch.arange(n_tokens, device=x.device)
        scores = grouped_scores(q, k).masked_fill(place > place.unsqueeze(1), -math.inf)
        powers = torch.exp(scores - scores.amax(-1, keepdim=True).detach())
        weights = powers / powers.sum(-1, keepdim=True)
        heads = grouped_context(self.drop(weights), v).permute(0, 2, 1, 3)
        return self.out_proj(heads.reshape(batch, n_tokens, -1))
