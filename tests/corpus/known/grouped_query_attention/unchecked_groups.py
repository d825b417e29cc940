# mistake: groups_not_checked
# the constructor does not refuse a num_kv_heads that does not divide num_heads
import torch
from torch import Tensor, nn


def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    heads, kv_heads = queries.shape[1], keys.shape[1]
    if heads % kv_heads:
        raise ValueError(f"{heads} heads, {kv_heads} of keys")
    q = queries.reshape(queries.shape[0], kv_heads, -1, queries.shape[-1])
    out = torch.einsum("bjrd,bjkd->bjrk", q, keys) * queries.shape[-1] ** -0.5
    return out.reshape(*queries.shape[:3], keys.shape[2])


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    heads, kv_heads = weights.shape[1], values.shape[1]
    if heads % kv_heads:
        raise ValueError(f"{heads} heads, {kv_heads} of values")
    w = weights.reshape(weights.shape[0], kv_heads, -1, weights.shape[-1])
    out = torch.einsum("bjrk,bjkd->bjrd", w, values)
    return out.reshape(*weights.shape[:3], values.shape[3])


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
            raise ValueError(f"{num_heads} heads do not divide {d_out}")
        self.context_length = context_length
        self.d_head = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > self.context_length:
            raise ValueError(f"{n} > {self.context_length}")
        q, k, v = (
            f(x).unflatten(-1, (-1, self.d_head)).movedim(2, 1)
            for f in (self.W_query, self.W_key, self.W_value)
        )
        i = torch.arange(n, device=x.device)
        scores = grouped_scores(q, k).masked_fill(i[None, :] > i[:, None], float("-inf"))
        out = grouped_context(self.dropout(scores.softmax(-1)), v)
        return self.out_proj(out.movedim(1, 2).flatten(2))
