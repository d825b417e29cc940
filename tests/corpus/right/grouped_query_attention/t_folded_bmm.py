# right: five axes (batch, kv head, group, ...), bmm on folded batches, one function for both products
import torch
from torch import Tensor, nn


def _grouped_product(a: Tensor, b: Tensor) -> Tensor:
    """a (batch, heads, n, m) times b (batch, kv_heads, m, p), without copying b."""
    heads, kv_heads = a.size(1), b.size(1)
    if heads % kv_heads:
        raise ValueError(f"{kv_heads} does not divide {heads}")
    rows = a.unflatten(1, (kv_heads, heads // kv_heads)).flatten(2, 3)
    product = torch.bmm(rows.flatten(0, 1), b.flatten(0, 1))
    return product.reshape(*a.shape[:3], b.size(-1))


def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    return _grouped_product(queries * queries.size(-1) ** -0.5, keys.mT)


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    return _grouped_product(weights, values)


class GroupedQueryAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, num_kv_heads) -> None:
        super().__init__()
        if d_out % num_heads or num_heads % num_kv_heads:
            raise ValueError("heads")
        self.d_head, self.context_length = d_out // num_heads, context_length
        narrow = self.d_head * num_kv_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, narrow, bias=False)
        self.W_value = nn.Linear(d_in, narrow, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.p = dropout

    def forward(self, x: Tensor) -> Tensor:
        n = x.size(1)
        if n > self.context_length:
            raise ValueError("too long")
        q, k, v = (
            layer(x).unflatten(-1, (-1, self.d_head)).movedim(2, 1)
            for layer in (self.W_query, self.W_key, self.W_value)
        )
        wall = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
        s = grouped_scores(q, k)
        w = torch.where(wall, s.new_full((), float("-inf")), s).softmax(-1)
        w = nn.functional.dropout(w, self.p, self.training)
        return self.out_proj(grouped_context(w, v).movedim(1, 2).flatten(2))
