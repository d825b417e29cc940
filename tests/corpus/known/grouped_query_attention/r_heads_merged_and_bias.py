# mistake: merged_without_transpose + out_proj_without_bias
import torch
from torch import Tensor, nn


def grouped_scores(queries: Tensor, keys: Tensor) -> Tensor:
    group, rest = divmod(queries.size(1), keys.size(1))
    if rest:
        raise ValueError("num_kv_heads must divide num_heads")
    q = queries.unflatten(1, (-1, group))
    s = torch.einsum("bjgqd,bjkd->bjgqk", q, keys)
    return s.flatten(1, 2) / queries.size(-1) ** 0.5


def grouped_context(weights: Tensor, values: Tensor) -> Tensor:
    group, rest = divmod(weights.size(1), values.size(1))
    if rest:
        raise ValueError("num_kv_heads must divide num_heads")
    return torch.einsum("bjgqk,bjkv->bjgqv", weights.unflatten(1, (-1, group)), values).flatten(1, 2)


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
        self.out_proj = nn.Linear(d_out, d_out, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        if n > self.context_length:
            raise ValueError("too many tokens")
        q = self.W_query(x).view(b, n, self.num_heads, self.d_head).transpose(1, 2)
        k = self.W_key(x).view(b, n, self.num_kv_heads, self.d_head).transpose(1, 2)
        v = self.W_value(x).view(b, n, self.num_kv_heads, self.d_head).transpose(1, 2)
        later = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
        weights = grouped_scores(q, k).masked_fill(later, float("-inf")).softmax(-1)
        out = grouped_context(self.dropout(weights), v)
        return self.out_proj(out.reshape(b, n, -1))
