# mistake: scaled_by_root_of_n_keys
import torch
from torch import Tensor, nn


def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    batch, num_heads, n_queries, _ = queries.shape
    num_kv_heads = keys.shape[1]
    if num_heads % num_kv_heads:
        raise ValueError(f"{num_kv_heads} does not divide {num_heads}")
    scale = keys.shape[2] ** -0.5
    q = queries.reshape(batch, num_kv_heads, -1, queries.shape[-1])
    return (q @ keys.mT * scale).reshape(batch, num_heads, n_queries, -1)


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    batch, num_heads, n_queries, n_keys = weights.shape
    num_kv_heads = values.shape[1]
    if num_heads % num_kv_heads:
        raise ValueError(f"{num_kv_heads} does not divide {num_heads}")
    return (weights.reshape(batch, num_kv_heads, -1, n_keys) @ values).reshape(batch, num_heads, n_queries, -1)


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
        if d_out % num_heads or num_heads % num_kv_heads:
            raise ValueError("sizes do not divide")
        self.num_heads, self.num_kv_heads = num_heads, num_kv_heads
        self.d_head = d_out // num_heads
        self.context_length = context_length
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.W_value = nn.Linear(d_in, num_kv_heads * self.d_head, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.attn_dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError("too many tokens")
        q = self.W_query(x).view(b, n, self.num_heads, self.d_head).transpose(1, 2)
        k = self.W_key(x).view(b, n, self.num_kv_heads, self.d_head).transpose(1, 2)
        v = self.W_value(x).view(b, n, self.num_kv_heads, self.d_head).transpose(1, 2)
        later = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
        weights = grouped_scores(q, k).masked_fill(later, float("-inf")).softmax(-1)
        out = grouped_context(self.attn_dropout(weights), v)
        return self.out_proj(out.transpose(1, 2).flatten(2))
